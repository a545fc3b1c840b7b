// A family of sessions for the tests of subagents, and what the tests look at afterwards. What they say is children-play.ts.
// Nothing is asserted here.
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Event,
  Harness,
  type HarnessOptions,
  type Json,
  type Model,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { eventsOf, ofType, type Storage, storeOf } from '../models/hosted-stage.ts'
import { play, type Roles } from './children-play.ts'
import { completeStore } from '../../src/stores/plan/complete-store.ts'

export { eventsOf, heard, ofType, STORAGES, storeOf } from '../models/hosted-stage.ts'
export { ask, type Line, play, report, resultsIn, type Roles, say, toldIn, use } from './children-play.ts'

export type FamilyOptions = Partial<Omit<HarnessOptions, 'model'>> & { readonly storage?: Storage }

export type Stage = { readonly harness: Harness; readonly store: CompleteStore }

/** Closed after the test, before its store is. */
export function family(roles: Roles | Model, options: FamilyOptions = {}): Stage {
  const { storage = 'memory', store: given = storeOf(storage), ...rest } = options
  const store = completeStore(given)
  const model = isModel(roles) ? roles : play(roles)
  const worker = { graceMs: 200, ...rest.worker }
  const harness = new Harness({ model, store, subagents: true, secrets: {}, ...rest, worker })
  onTestFinished(() => harness.close())
  return { harness, store }
}

function isModel(roles: Roles | Model): roles is Model {
  return 'call' in roles && typeof roles.call === 'function'
}

export function tool(name: string, extra: Partial<Parameters<typeof defineTool<unknown>>[0]> = {}): Tool {
  return defineTool<unknown>({
    name,
    description: name,
    input: z.object({}),
    effect: 'read',
    execute: () => `${name} ran`,
    ...extra,
  })
}

/** A promise that the test resolves by hand. */
export function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** The sessions of a tree, from the top. */
export async function treeOf(store: CompleteStore, root: string): Promise<readonly string[]> {
  return (await store.list({ root, limit: 1_000 })).map(({ session }) => session)
}

export async function childrenOf(store: CompleteStore, root: string): Promise<readonly string[]> {
  return (await treeOf(store, root)).filter((session) => session !== root)
}

type Answer = Extract<Event, { type: 'user.custom_tool_result' }>

/** What children told a session, with what they say about themselves. */
export async function toldTo(
  store: CompleteStore,
  session: string,
): Promise<readonly (Answer & { readonly about: Readonly<Record<string, Json>> })[]> {
  const answers = ofType(await eventsOf(store, session), 'user.custom_tool_result')
  return answers.map((answer) => ({ ...answer, about: (answer.metadata ?? {}) as Readonly<Record<string, Json>> }))
}

/** How the runs of a session ended. */
export async function endsOf(store: CompleteStore, session: string): Promise<readonly string[]> {
  return ofType(await eventsOf(store, session), 'run.settled').map(({ outcome }) => outcome.type)
}
