// The types that a server needs from the program that starts it: a store, a harness, and which harness a session
// belongs to. The server itself drives nothing and opens no store.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Harness, harnessParts } from '../harness.ts'
import type { Card, CompleteStore, Removal } from '../kernel/index.ts'
import type { RequestFields } from './request-body.ts'
import type { IdempotencyKey } from './idempotency-keys.ts'
import { HttpRefusal, missingSessionRefusal } from './refusals.ts'
import { driverText } from '../view/session-program.ts'
import type { RunMetrics } from './metrics.ts'
import type { SseOptions, StreamsLimit } from './sse.ts'
import type { TokenRegistry } from './token-registry.ts'
import type { WebhookDesk } from './webhook-endpoints.ts'
import type { Frames, Principal, WireAgent, WireReceipt } from './wire.ts'
import type { Route, RouteName } from './wire-routes.ts'

export type ServerHost = {
  readonly version: string
  readonly store: CompleteStore
  /** Identifies the store. Cursors of another store are invalid here. */
  readonly storeId: string
  /** Reads sessions and records events, for sessions of any agent. */
  readonly harness: Harness
  /** The harness that has this session's agent and tools. */
  harnessOf(card: Card): Promise<Harness>
  /** Chooses the harness, agent and folder of a new session. */
  begin(wish: NewSessionWish): Promise<NewSessionSetup>
  agents(): Promise<readonly WireAgent[]>
  /** Called with removed sessions, to delete what is kept of them outside the store. */
  onRemoved?(removed: readonly Removal[]): Promise<void>
  /**
   * A sentence for people that says who drives a session of another program. Null if this server's program drives it.
   */
  elsewhere(card: Card): string | null
  /** The program whose workers drive imported sessions. */
  readonly program: string
  readonly drives: boolean
  driving(): number
  /** Counts what the harnesses of this process do. Absent: /metrics has the store and the process alone. */
  readonly metrics?: RunMetrics
  /** Takes signed deliveries in. Absent: there are no endpoints. */
  readonly webhooks?: WebhookDesk
}
export type NewSessionWish = { readonly agent?: string; readonly folder?: string; readonly by: Principal }
export type NewSessionSetup = { readonly harness: Harness; readonly agent?: string; readonly folder?: string }

/** A request that passed all checks. */
export type ApiRequest = {
  readonly host: ServerHost
  readonly tokens: TokenRegistry
  readonly name: RouteName
  readonly route: Route
  readonly principal: Principal
  readonly params: Readonly<Record<string, string>>
  readonly query: RequestFields
  readonly body: RequestFields
  readonly key: IdempotencyKey | null
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly server: ServerState
}

/** An open stream, which either side may end. */
export type OpenStream = { bye(reason: Frames['bye']['reason']): void }

/** The state that all requests of one server share. */
export type ServerState = {
  readonly startedAt: number
  readonly hosts: ReadonlySet<string>
  readonly streams: Map<OpenStream, Principal>
  readonly closing: AbortSignal
  /** The path that the server is mounted under; empty at the root. */
  readonly base: string
  readonly sse: Partial<SseOptions>
  readonly streamsLimit: StreamsLimit
  report(where: string, error: unknown): void
}

/** A JSON answer, with `status` if it is not that of the route. Null if the handler has written the response itself. */
export type ApiAnswer = {
  readonly json: unknown
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
} | null
export type RouteHandlers = Readonly<Record<RouteName, (asked: ApiRequest) => Promise<ApiAnswer>>>

/** Adds to a card who drives the session, if another program does. */
export function addElsewhere<T extends Card>(host: ServerHost, card: T): T & { readonly elsewhere?: string } {
  const elsewhere = host.elsewhere(card)
  return elsewhere === null ? card : { ...card, elsewhere }
}

/** Adds to a receipt that no worker of this server drives the session. */
export function addDriverNote<T extends Pick<WireReceipt, 'elsewhere'>>(host: ServerHost, card: Card, receipt: T): T {
  if (host.drives || receipt.elsewhere !== undefined) return receipt
  return { ...receipt, elsewhere: `This server drives no sessions. ${driverText(card)}` }
}

/** The label with the name of the principal that opened a session. Children inherit the labels of their root. */
export const OWNER = 'owner'

export function mayReach(
  { reach, name }: Pick<Principal, 'reach' | 'name'>,
  { labels }: Pick<Card, 'labels'>,
): boolean {
  return reach === 'all' || labels?.[OWNER] === name
}

/** A delivery has no owner: it spends the money of its source, and its notices go to others. */
export function checkAgentReach({ reach }: Principal, harness: Harness, agent: string | undefined): void {
  const { sources = [] } = harnessParts(harness) ?? {}
  if (reach !== 'own' || !sources.some((source) => agent === `trigger_${source}`)) return
  const text = `The sessions of "${agent}" are deliveries, which belong to nobody. They need a token with the reach \`all\`.`
  throw new HttpRefusal(403, 'forbidden', text)
}

/** A session out of reach is answered byte for byte like a missing one. */
export async function requireCard({ host, principal, params }: ApiRequest): Promise<Card> {
  const { id = '' } = params
  const card = await host.store.card(id)
  if (card === null || !mayReach(principal, card)) throw missingSessionRefusal(id)
  return card
}
