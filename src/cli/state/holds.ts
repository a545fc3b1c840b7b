// `--hold TOOL=TIME`: a pause between what a call did and the commit of its result. It changes nothing but the time: to watch a run,
// or to kill its process where an effect has happened and the log does not say so yet.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Hook } from '../../index.ts'
import { EXIT, Refusal } from '../exit.ts'

const UNITS = { ms: 1, s: 1_000 } as const
/** Longer than this, a result may be withheld because the time of its tool is over. */
const HOLD_MS_MAX = 30_000

/** No hook unless something is held. */
export function holdsOf(given: readonly string[]): readonly Hook[] {
  if (given.length === 0) return []
  const holds = new Map(given.map(holdOf))
  const msOf = (tool: string): number => holds.get(tool) ?? holds.get('*') ?? 0
  return [{ type: 'after_tool_call', run: ({ tool }) => sleep(msOf(tool)) }]
}

function holdOf(given: string): readonly [string, number] {
  const [, tool = '', count = '', unit = ''] = /^(.+)=(\d{1,6})(ms|s)$/.exec(given) ?? []
  const ms = Number(count) * (UNITS[unit as keyof typeof UNITS] ?? 1)
  if (tool !== '' && ms <= HOLD_MS_MAX) return [tool, ms]
  throw new Refusal(EXIT.usage, `--hold takes a tool and a time of at most 30s, such as search=300ms, not "${given}".`)
}
