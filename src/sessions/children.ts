// Children that a host starts, and what children a session has: the same as with the tools of a model (effects/orders.ts), without one.
import type { CallKey, Within } from '../kernel/content.ts'
import { Fault } from '../kernel/failure.ts'
import type { Session } from '../kernel/session.ts'
import type { Card } from '../ports/store.ts'
import { type Checks, filled, flag, oneOf, optionsOf } from '../options.ts'
import { birth } from '../riders/children/birth.ts'
import { type ChildStatus, childrenBelow, childStatus, countBelow } from '../riders/children/status.ts'
import { headOf } from '../riders/children/tree.ts'
import { childId } from '../stores/plan/id.ts'
import { commit } from '../engine/again.ts'
import { checkOwn } from '../engine/program.ts'
import { plannerName, type Services } from '../engine/wiring.ts'
import type { BaseRef } from '../tools/worktrees/worktree.ts'
import { byBirth } from '../view/tree.ts'
import { usdOf } from '../view/usd.ts'
import { barredStart } from '../effects/admit-reply.ts'
import { namedBy, reusable, taskName } from '../effects/orders.ts'
import { boundsNow } from '../effects/run-options.ts'

export type SpawnOptions = {
  /** Another model for this task, by its name. */
  readonly model?: string
  /** A name for the task: the same agent with the same name is found again, with its history. */
  readonly taskKey?: string
  /** A new child, even if one with this `taskKey` is there. */
  readonly fresh?: boolean
  /** It goes on from the conversation of its parent, as the same agent: its requests begin with the same bytes. */
  readonly fork?: boolean
  /** `worktree`: it works in a git worktree of its own, from the folder of its parent. Default `none`. */
  readonly isolation?: 'none' | 'worktree'
  /** What the worktree begins with: the commit that is checked out (`head`, the default), or the default branch of origin (`fresh`). */
  readonly baseRef?: BaseRef
  /**
   * Another session that is told when a run of the child has ended: a message of JSON with `run_ended` and the names of the child. For
   * a session with a planner of its own, such as the board of a team. The parent gets its report all the same.
   */
  readonly tells?: string
}
const OPTIONS: Checks<SpawnOptions> = {
  model: filled,
  taskKey: filled,
  fresh: flag,
  fork: flag,
  isolation: oneOf<'none' | 'worktree'>({ none: true, worktree: true }),
  baseRef: oneOf<BaseRef>({ head: true, fresh: true }),
  tells: filled,
}
const checkSpawn = optionsOf<SpawnOptions>('spawn', OPTIONS)

export type Decision = 'spawned_new' | 'reused_running' | 'reused_idle' | 'forced_fresh'
export type Spawned = { readonly sessionId: string; readonly decision: Decision }

/** A child of a session. `task` is the name it is found again by, if it was given one. */
export type ChildRow = {
  readonly sessionId: string
  readonly agent: string
  readonly status: ChildStatus
  readonly task: string | null
  /** Of the child alone. */
  readonly costUsd: number
  readonly at: number
}

/** A session may be opened under any name; only one that hangs in the same tree is a child. */
export async function checkBelow({ store }: Services, id: string, sessionId: string): Promise<void> {
  const [own, other] = await Promise.all([store.card(id), store.card(sessionId)])
  if (sessionId.startsWith(`${id}~`) && other !== null && other.root === own?.root) return
  throw new Fault(
    'invalid_input',
    `Session ${sessionId} is not a child of session ${id}. Leave sessionId out, or name a child.`,
  )
}

export async function childrenOf({ store }: Services, id: string): Promise<readonly ChildRow[]> {
  await headOf(store, id)
  const cards: Card[] = []
  for await (const card of childrenBelow(store, id)) cards.push(card)
  return cards.toSorted(byBirth).map(rowOf)
}

function rowOf(card: Card): ChildRow {
  const { session: sessionId, agent, task, cost, at } = card
  const name = task === undefined ? null : task.slice(0, task.lastIndexOf('#'))
  return { sessionId, agent, status: childStatus(card), task: name, costUsd: usdOf(cost), at }
}

/** The child is on disk when this resolves: a new one with its task, or the one that is there with one more message. */
export async function spawn(
  services: Services,
  id: string,
  named: string,
  prompt: string,
  options: SpawnOptions,
): Promise<Spawned> {
  checkSpawn(options)
  if (typeof prompt !== 'string' || prompt.trim() === '')
    throw new Fault('invalid_input', 'A child needs a task. Give spawn a text as its second argument.')
  const { model, taskKey, fresh = false } = options
  const session = await headOf(services.store, id)
  const agent = startable(services, id, session, named)
  if (model !== undefined) services.model(model)
  const chosen = model === undefined ? {} : { options: { model } }
  const key = taskKey === undefined ? undefined : services.redactor.text(taskKey)
  const task = key === undefined ? {} : { task: taskName(key, { agent, toolkit: '', model: model ?? '' }) }
  const within = await boundsNow(services, session)
  const again = fresh || task.task === undefined ? null : await reusable(services.store, id, task.task, within)
  if (again !== null) {
    const idle = childStatus(again) === 'idle'
    const parts = [{ type: 'text', text: prompt }] as const
    const event = { type: 'user.message', id: services.random.id(), parts, when: 'next', by: `session:${id}` } as const
    const body = services.redactor.body({ ...event, ...(idle ? chosen : {}) })
    await commit(services, [{ session: again.session, lane: 'inbox', events: [body] }])
    return { sessionId: again.session, decision: idle ? 'reused_idle' : 'reused_running' }
  }
  await checkRoom(services, id, session)
  const forked = options.fork ? { fork: true as const } : {}
  const told = options.tells === undefined ? {} : { tells: options.tells }
  const order = { child: agent, detached: true as const, ...task, ...chosen, ...forked, ...told }
  const base = options.isolation === 'worktree' ? (options.baseRef ?? 'head') : null
  const sessionId = await born(services, id, session, { order, within }, prompt, base)
  return { sessionId, decision: fresh ? 'forced_fresh' : 'spawned_new' }
}

/** The agent that is meant, if this session may start it now: what a model would be refused, a host is too. */
function startable(services: Services, id: string, whole: Session, named: string): string {
  const { agent: own, parent, run, ...session } = whole
  checkOwn(services, id, whole)
  if (session.closed || session.closing)
    throw new Fault('session_closed', `Session ${id} is closed and accepts nothing more.`)
  if (run !== null && session.stop > 0)
    throw new Fault('session_busy', `The run of session ${id} is being stopped. Start nothing before it has ended.`)
  const agent = services.agent(own)
  const child = namedBy(agent, named)
  const barred = barredStart({ services, agent, id, parent, most: agent.limits.depth ?? 0 }, child)
  if (barred !== null) throw new Fault('invalid_input', barred.text, barred.as)
  return child
}

/** A host is held to the bound of a tree as a model is. */
async function checkRoom({ store, agent }: Services, id: string, { agent: own, parent, run }: Session): Promise<void> {
  const most = (run ?? agent(own)).limits.children
  if (most === undefined || (await countBelow(store, parent?.root ?? id, most)) < most) return
  throw new Fault(
    'too_many',
    `Session ${id} is in a tree that may have ${most} children that are not closed, and has them. Close some, or raise limits.children.`,
  )
}

type Wanted = Parameters<typeof birth>[0]['order']

/** No call has a number as high as this, in one reply: so no child that a model starts has the same name. */
const FIRST = 1_000_000
const NAMES = 1_000_000_000
const TRIES_MAX = 100

async function born(
  services: Services,
  id: string,
  session: Session,
  { order, within }: { readonly order: Wanted; readonly within: Within | undefined },
  prompt: string,
  base: BaseRef | null,
): Promise<string> {
  const { store, redactor, random } = services
  for (let n = 0; n < TRIES_MAX; n++) {
    // Drawn, and not counted: of many that start at once, each would try all names before its own.
    const key: CallKey = `${session.seq}.${FIRST + Math.floor(random.fraction() * NAMES)}`
    const name = childId(id, key)
    const known = {
      at: store.now(),
      plannerOf: (agent: string) => plannerName(services, agent),
      readerOf: () => undefined,
      traceOf: () => undefined,
      within: () => within,
    }
    const place = base === null ? {} : { folder: await worktreeFor(session, id, name, base) }
    const task = redactor.text(prompt)
    try {
      await commit(services, birth({ id, session, key, born: name, order: { ...order, ...place }, task, ...known }))
      return name
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'session_exists') throw error
    }
  }
  throw new Fault('too_many', `Session ${id} starts too many children at once. Try again.`)
}

/** Made before the child is: one that is there always has its folder. */
async function worktreeFor({ folder }: Session, parent: string, id: string, base: BaseRef): Promise<string> {
  if (folder === undefined)
    throw new Fault(
      'invalid_input',
      `Session ${parent} has no folder to make a worktree from. Open it with \`folder\`, or use isolation "none".`,
    )
  const { makeWorktree } = await import('../tools/worktrees/worktree.ts')
  return (await makeWorktree({ folder, id, parent, base })).folder
}
