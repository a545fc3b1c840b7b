// What a server serves: sessions through the verbs of a harness, and their store. Whoever starts the server says which harness a session
// belongs to; the server itself drives nothing and opens no store.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Harness } from '../harness.ts'
import type { Card, Removal, Store } from '../kernel/index.ts'
import type { Body } from './body.ts'
import type { Key } from './keys.ts'
import { missing } from './refusals.ts'
import { driverText } from '../view/program.ts'
import type { SseOptions } from './sse.ts'
import type { Tokens } from './tokens.ts'
import type { Frames, Principal, WireAgent, WireReceipt } from './wire.ts'
import type { Route, RouteName } from './wire-routes.ts'

export type Host = {
  readonly version: string
  readonly store: Store
  /** Names the store: cursors of another mean nothing here. */
  readonly storeId: string
  /** Reads and records, for sessions of any agent. */
  readonly harness: Harness
  /** The harness that has the agent of this session, with its tools. */
  harnessOf(card: Card): Promise<Harness>
  /** Where a new session is opened, and with which agent and folder. */
  begin(wish: Wish): Promise<Begun>
  agents(): Promise<readonly WireAgent[]>
  /** Told of sessions that were taken out: what is kept of them beside the store goes too. */
  removed?(removed: readonly Removal[]): Promise<void>
  /** Who drives a session of another program, in a sentence for people; null for one that the workers of this server's program drive. */
  elsewhere(card: Card): string | null
  /** Whose workers drive what is imported here. */
  readonly program: string
  readonly drives: boolean
  driving(): number
}
export type Wish = { readonly agent?: string; readonly folder?: string; readonly by: Principal }
export type Begun = { readonly harness: Harness; readonly agent?: string; readonly folder?: string }

/** One request that passed all checks. */
export type Asked = {
  readonly host: Host
  readonly tokens: Tokens
  readonly name: RouteName
  readonly route: Route
  readonly principal: Principal
  readonly params: Readonly<Record<string, string>>
  readonly query: Body
  readonly body: Body
  readonly key: Key | null
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly server: ServerState
}

/** An answer that goes on until one of the two ends it. */
export type OpenStream = { bye(reason: Frames['bye']['reason']): void }

/** What all requests of one server share. */
export type ServerState = {
  readonly startedAt: number
  readonly hosts: ReadonlySet<string>
  readonly streams: Map<OpenStream, Principal>
  readonly closing: AbortSignal
  /** The path that it is mounted under; empty at the top. */
  readonly base: string
  readonly sse: Partial<SseOptions>
  report(where: string, error: unknown): void
}

/** JSON, or nothing where the response was written already. */
export type Given = { readonly json: unknown; readonly headers?: Readonly<Record<string, string>> } | null
export type Answers = Readonly<Record<RouteName, (asked: Asked) => Promise<Given>>>

/** A card as it is sent. */
export function shownCard<T extends Card>(host: Host, card: T): T & { readonly elsewhere?: string } {
  const elsewhere = host.elsewhere(card)
  return elsewhere === null ? card : { ...card, elsewhere }
}

/** What a caller is told of what was recorded: also that no worker of this server goes on with it. */
export function addDriver(host: Host, card: Card, receipt: WireReceipt): WireReceipt {
  if (host.drives || receipt.elsewhere !== undefined) return receipt
  return { ...receipt, elsewhere: `This server drives no sessions. ${driverText(card)}` }
}

/** Who opened a session, as its card has it. Children have the labels of their root. */
export const OWNER = 'owner'

export function reaches({ reach, name }: Pick<Principal, 'reach' | 'name'>, { labels }: Pick<Card, 'labels'>): boolean {
  return reach === 'all' || labels?.[OWNER] === name
}

/** What is out of reach is not there: the answer is the same, byte for byte. */
export async function cardOf({ host, principal, params }: Asked): Promise<Card> {
  const { id = '' } = params
  const card = await host.store.card(id)
  if (card === null || !reaches(principal, card)) throw missing(id)
  return card
}
