// A cell of a seed: a program with fan-out, chains and approvals, in a session that is driven by the real planner and the real engine
// while workers die. In half of these seeds each process runs the program another way, so that a cell that goes on there must end.
import { AS_AGENT } from '../src/graphs/graph-definition.ts'
import type { EffectClass } from '../src/kernel/content.ts'
import { EMPTY } from '../src/kernel/session.ts'
import type { CompleteStore } from '../src/ports/store.ts'
import { ownerWrite } from '../src/runtime/commit/owner-write.ts'
import { completeLimits } from '../src/runtime/state/limits.ts'
import { Toolbox } from '../src/runtime/state/toolbox.ts'
import type { Agent } from '../src/runtime/state/agent.ts'
import { callHash, codeHash, readCellRecord } from '../src/scripts/cell-log.ts'
import { type CellRunner, loadCellsHere, type StartRunner } from '../src/scripts/sandbox.ts'
import { scriptsWith } from '../src/scripts/create-scripts.ts'
import { SCRIPT } from '../src/view/script-cell.ts'
import { defineTool, type Tool } from '../src/tools/core/tool.ts'
import { canonicalJson } from '../src/tools/core/canonical-json.ts'
import type { Cast } from './cast.ts'
import { NEVER } from './idle-harness.ts'
import type { Oracle } from './oracle.ts'
import type { Stage } from './people.ts'
import { OWN } from './programs.ts'
import type { SimProcess } from './process.ts'
import { Chance } from './scheduler.ts'

const SESSION = 'p0'
const SHARE = 0.5
const TOOL_MS = 60
/** More calls at once than one reply holds, a chain beside another, and calls that wait for people. */
const PROGRAM = `const said = []
const call = (tool, key) => tool_call(tool, { key }).then(() => said.push(key), (error) => said.push(key + ' ' + error.kind))
await Promise.all(Array.from({ length: 53 }, (_, n) => call('look', 'l' + n)))
const chain = async (tool, name, length) => { for (let n = 0; n < length; n++) await call(tool, name + n) }
await Promise.all([chain('post', 'a', 3), chain('look', 'b', 5), call('pay', 'c0')])
await call('post', 'd0')
return said`
const KEYS = 53 + 3 + 5 + 1 + 1

/** Whether this seed has a cell. Its own chance, so that the other seeds are as they were. */
export function hasCells(seed: number, { hooks, clocks }: Cast): boolean {
  return hooks === null && !clocks && new Chance(seed ^ 0x5c41).yes(SHARE)
}

export class Cells {
  readonly tally = { calls: 0, ended: 0, diverged: 0 }
  busy = 0
  readonly #stage: Stage
  readonly #oracle: Oracle
  readonly #drifts: boolean
  #start: StartRunner | null = null

  constructor(stage: Stage, seed: number, oracle: Oracle) {
    this.#stage = stage
    this.#oracle = oracle
    this.#drifts = new Chance(seed ^ 0x1d71).yes(0.5)
  }

  /** Before anything happens: from then on an engine takes no real time. */
  async load(): Promise<void> {
    this.#start = await loadCellsHere()
  }

  agentIn(process: SimProcess): (name: string) => Agent | null {
    const { store, clock } = process
    const start = this.#drifts ? this.#drifting(process.name) : this.#start
    if (start === null) throw new Error('The engine is not loaded.')
    const { planner } = scriptsWith({ mode: 'on' }, start, clock)
    const agent = planner[AS_AGENT]({ store, clock }, new Map([['default', this.#author(process)]]))
    return (name) => (name === SCRIPT ? agent : null)
  }

  async play(): Promise<void> {
    const { store, actor } = this.#stage
    this.busy += 1
    const created = { type: 'session.created', agent: SCRIPT, planner: SCRIPT, program: OWN } as const
    await store.commit([ownerWrite(SESSION, EMPTY, [created], { now: actor.now(), epoch: 0 })])
    const parts = [{ type: 'text', text: PROGRAM }] as const
    await this.#stage.say(SESSION, { type: 'user.message', id: 'begin', parts, when: 'next' })
    this.busy -= 1
  }

  /** At rest: each call stands once in the log, with the hash of what it is, and all of them are those of one way to run the program. */
  async audit(store: CompleteStore): Promise<readonly string[]> {
    const { events } = await store.read(SESSION, 0)
    const wrong: string[] = []
    const [keys, ways] = [new Set<string>(), new Set<string>()]
    let isOver = false
    for (const event of events) {
      if (event.type === 'run.settled') {
        this.#settled(event.outcome, isOver, wrong)
        isOver ||= event.outcome.type === 'completed' || event.outcome.type === 'failed'
      }
      if (event.type !== 'agent.message') continue
      const calls = event.calls.map((call, i) => ({ ...call, key: `${event.seq}.${i}` }))
      const record = readCellRecord({ role: 'assistant', seq: event.seq, parts: event.parts, calls })
      for (const [i, { tool, args }] of calls.entries()) {
        const { key, by = '' } = args as { readonly key: string; readonly by?: string }
        const recorded = record?.calls[i]
        this.tally.calls += 1
        if (keys.has(key)) wrong.push(`C1 the call ${key} of a cell is made twice`)
        if (recorded?.hash !== callHash(codeHash(PROGRAM), { n: recorded?.n ?? -1, tool, args }))
          wrong.push(`C2 the call ${key} has the hash of another one`)
        keys.add(key)
        ways.add(by)
      }
      const { result } = (record?.end ?? {}) as { readonly result?: { readonly value: readonly string[] | null } }
      if (result?.value && result.value.length !== KEYS) wrong.push('C3 a cell ended without some of its calls')
    }
    if (ways.size > 1) wrong.push('C4 a cell went on another way than its log says')
    return wrong
  }

  /** What somebody says to a cell that has ended is refused. */
  #settled(outcome: { readonly type: string }, isOver: boolean, wrong: string[]): void {
    if (isOver) {
      const refused = outcome.type === 'interrupted' || canonicalJson(outcome).includes('this one has ended')
      if (!refused) wrong.push(`C7 a cell that has ended goes on: ${canonicalJson(outcome)}`)
      return
    }
    const diverged = canonicalJson(outcome).includes('ScriptDiverged')
    if (diverged) this.tally.diverged += 1
    else if (outcome.type === 'completed') this.tally.ended += 1
    if (diverged && !this.#drifts) wrong.push(`C5 a cell went another way: ${canonicalJson(outcome)}`)
    if (outcome.type === 'failed' && !diverged) wrong.push(`C6 a cell failed: ${canonicalJson(outcome)}`)
  }

  /** In this process every call names it, so that a cell which began elsewhere makes other calls here. */
  #drifting(by: string): StartRunner {
    return async (clock) => {
      const runner = (await this.#start?.(clock)) as CellRunner
      return {
        close: () => runner.close(),
        run: async (requests) =>
          (await runner.run(requests)).map((rest) => {
            if (rest.type !== 'rest') return rest
            return { ...rest, calls: rest.calls.map((call) => ({ ...call, args: { ...(call.args as object), by } })) }
          }),
      }
    }
  }

  #author(process: SimProcess): Agent {
    const tools = [
      this.#tool(process, 'look', 'read'),
      this.#tool(process, 'post', 'once'),
      this.#tool(process, 'pay', 'once'),
    ]
    return {
      name: 'author',
      model: NEVER,
      tools: new Toolbox({ tools, plan: false, clock: process.clock }),
      instructions: '',
      limits: completeLimits({ lossesMax: 1_000, activeMs: 600_000 }),
      approvalMs: null,
      policy: { rules: [] },
      environment: null,
      output: null,
      budget: null,
      children: [],
      planner: null,
    }
  }

  #tool(process: SimProcess, name: string, effect: EffectClass): Tool {
    return defineTool({
      name,
      description: name,
      input: { type: 'object' },
      effect,
      timeoutMs: TOOL_MS,
      ...(name === 'pay' ? { approval: 'ask' as const } : {}),
      execute: async (_args, context) => {
        await process.sleep(process.chance.between(0, 10))
        this.#oracle.execute(context.session, context.call, effect)
        await process.sleep(process.chance.between(0, 10))
        return name
      },
    })
  }
}
