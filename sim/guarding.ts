// What the guard of a run may say and when it must end one, counted again from the log: no notice twice in a run, no request past
// the limit of tokens, and a hopeless call is made exactly as often as the breaker allows, whatever crashed meanwhile.
import type { Event, EventOf } from '../src/kernel/event.ts'
import { type Cast, STUBBORN_MAX } from './cast.ts'
import type { Fail, Watched } from './watched.ts'

/** The last failure of the hopeless call, and in how many turns in a row it came. */
type Trail = { text: string; count: number; turn: number }
type Told = { readonly notices: Set<string>; trail: Trail }

export class Guarding {
  readonly #cast: Cast
  readonly #told = new Map<string, Told>()

  constructor(cast: Cast) {
    this.#cast = cast
  }

  take(session: string, w: Watched, e: Event, fail: Fail): void {
    const told = this.#told.get(session) ?? anew()
    this.#told.set(session, told)
    if (e.type === 'run.started') this.#told.set(session, anew())
    else if (e.type === 'note.added' && w.run !== null && (e.kind === 'limit' || e.kind === 'nudge')) {
      if (told.notices.has(e.text)) fail(`G1 told twice in one run: ${e.text}`)
      told.notices.add(e.text)
    } else if (e.type === 'agent.tool_result') fails(told, w, e)
    else if (e.type === 'model.started') this.#asked(told, w, fail)
    else if (e.type === 'run.settled') this.#settled(w.fold.agent, told, e, fail)
  }

  #asked({ trail }: Told, w: Watched, fail: Fail): void {
    const most = w.run?.limits.tokens ?? null
    if (most !== null && w.run && w.run.tokens >= most)
      fail('G3 a request is made though the tokens of the run are used up')
    if (this.#cast.breaker && trail.count >= STUBBORN_MAX) fail('G2 a run goes on that gets nowhere')
  }

  #settled(agent: string, { trail }: Told, e: EventOf<'run.settled'>, fail: Fail): void {
    if (e.outcome.type !== 'halted') return
    const [, count] = /"broken" failed (\d+) times/.exec(e.outcome.reason) ?? []
    if (count === undefined) return
    if (!this.#cast.breaker || !this.#cast.roles.get(agent)?.stubborn) fail('G2 a run is halted for what it did not do')
    if (Number(count) !== STUBBORN_MAX || trail.count !== STUBBORN_MAX)
      fail(`G2 a run is halted after ${trail.count} failures, said to be ${count}`)
  }
}

function anew(): Told {
  return { notices: new Set(), trail: { text: '', count: 0, turn: 0 } }
}

/** Aborted results do not count. Any other result that is not the same failure again ends the series. */
function fails({ trail }: Told, w: Watched, e: EventOf<'agent.tool_result'>): void {
  const call = w.calls.get(e.call)
  if (!call || e.status === 'aborted') return
  const text = typeof e.content === 'string' ? e.content : ''
  const hopeless = call.proposal.tool === 'broken' && e.failure?.kind === 'NotFound'
  if (!hopeless || trail.text !== text) trail.count = 0
  if (hopeless && trail.turn !== call.turn) trail.count += 1
  trail.text = hopeless ? text : ''
  trail.turn = call.turn
}
