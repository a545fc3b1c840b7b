// The hooks of a simulated process: they take their time, hold back, rewrite, throw, and die in the middle of it.
import { Hooks } from '../src/runtime/hooks/hooks.ts'
import type { Hook } from '../src/runtime/state/hook-events.ts'
import type { HookPlan } from './cast.ts'
import type { SimProcess } from './process.ts'
import type { Verdicts, Word } from './verdicts.ts'

const NO = 'The simulation says no.'
const FIRST = 's0'

export function simHooks(plan: HookPlan, process: SimProcess, verdicts: Verdicts): Hooks {
  const { chance } = process
  const think = async (): Promise<void> => {
    // Those that answer at once land together.
    if (plan.pace === 'at once') return
    await process.sleep(chance.between(0, plan.pace === 'soon' ? 3 : chance.yes(0.2) ? 80 : 20))
    if (process.falters()) await process.sleep(0)
  }
  const word = (): Word => {
    const drawn = chance.fraction()
    return drawn < 0.1 ? 'cancel' : drawn < 0.1 + plan.throws ? 'throw' : 'allow'
  }
  const judge = async (hook: string, session: string, call: string): Promise<{ cancel: string } | undefined> => {
    const say = verdicts.ask(hook, process, session, call)
    await think()
    // The first session is the one that is sure to run every class of effect.
    const said = session === FIRST ? 'allow' : word()
    say(said)
    if (said === 'throw') throw new Error('The hook failed.')
    return said === 'cancel' ? { cancel: NO } : undefined
  }
  const hooks: Hook[] = plan.before.map((tools, i) => ({
    type: 'before_tool_call',
    ...(tools === null ? {} : { tools }),
    run: ({ session, call }) => judge(`before${i}`, session, call),
  }))
  if (plan.subagent)
    hooks.push({
      type: 'before_subagent_run',
      run: ({ session, call, child }) => judge(`subagent ${child}`, session, call),
    })
  hooks.push(rewriter(plan, process, verdicts, think), {
    type: 'run_end',
    run: ({ session }) => verdicts.ended(session),
  })
  if (plan.stop) hooks.push({ type: 'stop', run: ({ session }) => fateOf(process, session, think, { stop: NO }) })
  if (plan.prompt)
    hooks.push({
      type: 'user_prompt_submit',
      run: ({ session }) =>
        fateOf(process, session, think, chance.yes(0.5) ? { cancel: NO } : { context: 'More to read.' }),
    })
  const asked = plan.strict ? hooks.map((hook): Hook => ({ ...hook, strict: true })) : hooks
  return new Hooks({ hooks: asked, agents: [], clock: process.clock, report: () => {} })
}

/** Changes the result, leaves it as it is, or throws. */
function rewriter(plan: HookPlan, process: SimProcess, verdicts: Verdicts, think: () => Promise<void>): Hook {
  return {
    type: 'after_tool_call',
    ...(plan.after === null ? {} : { tools: plan.after }),
    run: async ({ session, call, output }) => {
      await think()
      const drawn = process.chance.fraction()
      if (drawn < 0.5) output.content = `${output.content} (seen)`
      verdicts.leave(session, call, output.content)
      if (drawn > 0.95) throw new Error('The hook failed.')
    },
  }
}

/** Mostly nothing; now and then a verdict, or an error. */
async function fateOf<T>(
  process: SimProcess,
  session: string,
  think: () => Promise<void>,
  word: T,
): Promise<T | undefined> {
  await think()
  const drawn = session === FIRST ? 1 : process.chance.fraction()
  if (drawn < 0.02) throw new Error('The hook failed.')
  return drawn < 0.12 ? word : undefined
}
