// Children that a host starts without a model, and the list of a session's children. The rules are those of the tools
// of a model (child orders).
import type { CallKey, Narrowing } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { Card } from '../ports/store.ts'
import { type Checks, nonEmptyCheck, flagCheck, oneOf, optionsChecker } from '../options.ts'
import { createChild } from '../runtime/commit/create-child.ts'
import { type ChildStatus, listChildren, childStatus, countOpenBelow } from '../runtime/state/children-below.ts'
import { readSessionHead } from '../runtime/state/session-tree.ts'
import { childId } from '../view/ids.ts'
import { commitWithRetry } from '../runtime/state/store-retry.ts'
import { checkOwnSession } from '../runtime/state/program.ts'
import type { Services } from '../runtime/state/runtime-ports.ts'
import { plannerName } from '../runtime/state/agent.ts'
import type { BaseRef } from '../tools/worktrees/worktree.ts'
import { compareByCall } from '../view/tree-rows.ts'
import { usdOf } from '../view/usd.ts'
import { whyNoChild } from '../runtime/turn/admit-reply.ts'
import { childAgentName, findReusableChild, taskName } from '../runtime/turn/child-orders.ts'
import { currentChildBounds } from '../runtime/turn/run-options.ts'

export type SpawnOptions = {
  /** Another model for this task, by its name. */
  readonly model?: string
  /** A name for the task: a child with the same agent and the same name is used again, with its history. */
  readonly taskKey?: string
  /** Starts a new child, even if one with this `taskKey` exists. */
  readonly fresh?: boolean
  /** The child continues the conversation of its parent, as the same agent: its requests begin with the same bytes. */
  readonly fork?: boolean
  /** `worktree`: it works in a git worktree of its own, from the folder of its parent. Default `none`. */
  readonly isolation?: 'none' | 'worktree'
  /**
   * The start of the worktree: the commit that is checked out (`head`, the default), or the default branch of origin
   * (`fresh`).
   */
  readonly baseRef?: BaseRef
  /**
   * Another session to notify when a run of the child has ended, by a message of JSON with `run_ended` and the names of
   * the child. For a session with a planner of its own, such as the board of a team. The parent gets its report all the
   * same.
   */
  readonly tells?: string
}
const OPTIONS: Checks<SpawnOptions> = {
  model: nonEmptyCheck,
  taskKey: nonEmptyCheck,
  fresh: flagCheck,
  fork: flagCheck,
  isolation: oneOf<'none' | 'worktree'>({ none: true, worktree: true }),
  baseRef: oneOf<BaseRef>({ head: true, fresh: true }),
  tells: nonEmptyCheck,
}
const checkSpawn = optionsChecker<SpawnOptions>('spawn', OPTIONS)

export type SpawnDecision = 'spawned_new' | 'reused_running' | 'reused_idle' | 'forced_fresh'
export type SpawnResult = { readonly sessionId: string; readonly decision: SpawnDecision }

/** A child of a session. `task` is the name under which it is found again, if it has one. */
export type ChildRow = {
  readonly sessionId: string
  readonly agent: string
  readonly status: ChildStatus
  readonly task: string | null
  /** The cost of the child alone. */
  readonly costUsd: number
  readonly at: number
}

/**
 * Throws unless the session is below this one. Any session may be opened under such a name, so it must also be in the
 * same tree.
 */
export async function checkIsDescendant({ store }: Services, id: string, sessionId: string): Promise<void> {
  const [own, other] = await Promise.all([store.card(id), store.card(sessionId)])
  if (sessionId.startsWith(`${id}~`) && other !== null && other.root === own?.root) return
  throw new Fault(
    'invalid_input',
    `Session ${sessionId} is not a child of session ${id}. Leave sessionId out, or name a child.`,
  )
}

export async function listChildRows({ store }: Services, id: string): Promise<readonly ChildRow[]> {
  await readSessionHead(store, id)
  const cards: Card[] = []
  for await (const card of listChildren(store, id)) cards.push(card)
  return cards.toSorted(compareByCall).map(buildChildRow)
}

function buildChildRow(card: Card): ChildRow {
  const { session: sessionId, agent, task, cost, at } = card
  const name = task === undefined ? null : task.slice(0, task.lastIndexOf('#'))
  return { sessionId, agent, status: childStatus(card), task: name, costUsd: usdOf(cost), at }
}

/** The child is on disk when this resolves: a new child with its task, or the existing one with one more message. */
export async function spawnChild(
  services: Services,
  id: string,
  named: string,
  prompt: string,
  options: SpawnOptions,
): Promise<SpawnResult> {
  checkSpawn(options)
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new Fault('invalid_input', 'A child needs a task. Give spawn a text as its second argument.')
  const { model, taskKey, fresh = false } = options
  const session = await readSessionHead(services.store, id)
  const agent = startableAgent(services, id, session, named)
  if (model !== undefined) services.model(model)
  const chosen = model === undefined ? {} : { options: { model } }
  const key = taskKey === undefined ? undefined : services.redactor.text(taskKey)
  const task = key === undefined ? {} : { task: taskName(key, { agent, toolkit: '', model: model ?? '' }) }
  const within = await currentChildBounds(services, session)
  const again = fresh || task.task === undefined ? null : await findReusableChild(services.store, id, task.task, within)
  if (again !== null) {
    const idle = childStatus(again) === 'idle'
    const parts = [{ type: 'text', text: prompt }] as const
    const event = { type: 'user.message', id: services.random.id(), parts, when: 'next', by: `session:${id}` } as const
    const body = services.redactor.body({ ...event, ...(idle ? chosen : {}) })
    await commitWithRetry(services, [{ session: again.session, lane: 'inbox', events: [body] }])
    return { sessionId: again.session, decision: idle ? 'reused_idle' : 'reused_running' }
  }
  await checkTreeRoom(services, id, session)
  const forked = options.fork ? { fork: true as const } : {}
  const told = options.tells === undefined ? {} : { tells: options.tells }
  const order = { child: agent, detached: true as const, ...task, ...chosen, ...forked, ...told }
  const base = options.isolation === 'worktree' ? (options.baseRef ?? 'head') : null
  const sessionId = await createSpawnedChild(services, id, session, { order, within }, prompt, base)
  return { sessionId, decision: fresh ? 'forced_fresh' : 'spawned_new' }
}

/** Returns the agent to start, if this session may start it now. A host gets the same refusals as a model. */
function startableAgent(services: Services, id: string, whole: Session, named: string): string {
  const { agent: own, parent, run, ...session } = whole
  checkOwnSession(services, id, whole)
  if (session.closed || session.closing)
    throw new Fault('session_closed', `Session ${id} is closed and accepts nothing more.`)
  if (run !== null && session.stop > 0)
    throw new Fault('session_busy', `The run of session ${id} is being stopped. Start nothing before it has ended.`)
  const agent = services.agent(own)
  const child = childAgentName(agent, named)
  const barred = whyNoChild({ services, agent, id, parent, most: agent.limits.depth ?? 0 }, child)
  if (barred !== null) throw new Fault('invalid_input', barred.text, barred.as)
  return child
}

/** A host is bound by the tree's limit as a model is. */
async function checkTreeRoom(
  { store, agent }: Services,
  id: string,
  { agent: own, parent, run }: Session,
): Promise<void> {
  const most = (run ?? agent(own)).limits.children
  if (most === undefined || (await countOpenBelow(store, parent?.root ?? id, most)) < most) return
  throw new Fault(
    'too_many',
    `Session ${id} is in a tree that may have ${most} children that are not closed, and has them. Close some, or raise limits.children.`,
  )
}

type SpawnOrder = Parameters<typeof createChild>[0]['order']

/** No reply has a call with such a high index, so no child that a model starts has the same name. */
const FIRST = 1_000_000
const NAMES = 1_000_000_000
const TRIES_MAX = 100

async function createSpawnedChild(
  services: Services,
  id: string,
  session: Session,
  { order, within }: { readonly order: SpawnOrder; readonly within: Narrowing | undefined },
  prompt: string,
  base: BaseRef | null,
): Promise<string> {
  const { store, redactor, random } = services
  for (let n = 0; n < TRIES_MAX; n++) {
    // Drawn at random and not counted: if many start at once, each would try all taken names before it finds its own.
    const key: CallKey = `${session.seq}.${FIRST + Math.floor(random.fraction() * NAMES)}`
    const name = childId(id, key)
    const known = {
      at: store.now(),
      plannerOf: (agent: string) => plannerName(services, agent),
      readerOf: () => undefined,
      traceOf: () => undefined,
      within: () => within,
    }
    const place = base === null ? {} : { folder: await makeSpawnWorktree(session, id, name, base) }
    const task = redactor.text(prompt)
    try {
      await commitWithRetry(
        services,
        createChild({ id, session, key, born: name, order: { ...order, ...place }, task, ...known }),
      )
      return name
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'session_exists') throw error
    }
  }
  throw new Fault('too_many', `Session ${id} starts too many children at once. Try again.`)
}

/** Made before the child, so that an existing child always has its folder. */
async function makeSpawnWorktree({ folder }: Session, parent: string, id: string, base: BaseRef): Promise<string> {
  if (folder === undefined)
    throw new Fault(
      'invalid_input',
      `Session ${parent} has no folder to make a worktree from. Open it with \`folder\`, or use isolation "none".`,
    )
  const { makeWorktree } = await import('../tools/worktrees/worktree.ts')
  return (await makeWorktree({ folder, id, parent, base })).folder
}
