// `--hold TOOL=TIME`: a pause between the effect of a call and the commit of its result. It changes only the time: to
// watch a run, or to kill its process after an effect and before the log has the result.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hook } from '../../index.ts'
import { EXIT, CliError } from '../exit.ts'

const UNITS = { ms: 1, s: 1_000 } as const
/** After a longer pause the result may be withheld, because the time limit of its tool is over. */
const HOLD_MS_MAX = 30_000

/** Returns no hook if no tool is held. */
export function holdHooks(given: readonly string[]): readonly Hook[] {
  if (given.length === 0) return []
  const holds = new Map(given.map(parseHold))
  const msOf = (tool: string): number => holds.get(tool) ?? holds.get('*') ?? 0
  return [{ type: 'after_tool_call', run: ({ tool }) => sleep(msOf(tool)) }]
}

function parseHold(given: string): readonly [string, number] {
  const [, tool = '', count = '', unit = ''] = /^(.+)=(\d{1,6})(ms|s)$/.exec(given) ?? []
  const ms = Number(count) * (UNITS[unit as keyof typeof UNITS] ?? 1)
  if (tool !== '' && ms <= HOLD_MS_MAX) return [tool, ms]
  throw new CliError(EXIT.usage, `--hold takes a tool and a time of at most 30s, such as search=300ms, not "${given}".`)
}
