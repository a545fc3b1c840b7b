// `fanout`: what one call of a wide turn costs. One turn of 100 calls at once, in memory, the first thing a process does.
import { Harness, scripted } from '../src/index.ts'
import { type Case, cpuMs, type Family } from './family.ts'
import { argsOf, LIMITS, lookup, RESULT } from './turn.ts'

const CALLS = 100
const numbers = Array.from({ length: CALLS }, (_, n) => n)

const harness: Case = async () => {
  const calls = numbers.map((n) => ({ tool: 'lookup', args: argsOf(n) }))
  const model = scripted([{ calls }, 'done'])
  const subject = new Harness({ model, tools: [lookup], limits: { ...LIMITS, parallel: CALLS } })
  const begun = cpuMs()
  const result = await subject.run('go')
  const ms = cpuMs() - begun
  await subject.close()
  if (result.usage.toolCalls !== CALLS) throw new Error(`${result.usage.toolCalls} calls were made`)
  return { us: (ms * 1_000) / CALLS }
}

const floor: Case = async () => {
  const tool = async (_args: unknown): Promise<string> => RESULT
  const begun = cpuMs()
  const calls = numbers.map((n) => ({ id: `call_${n}`, args: JSON.stringify(argsOf(n)) }))
  const results = await Promise.all(calls.map(async ({ id, args }) => ({ id, content: await tool(JSON.parse(args)) })))
  const messages: unknown[] = ['go', calls, ...results]
  const ms = cpuMs() - begun
  if (messages.length !== CALLS + 2) throw new Error('a result is missing')
  return { us: (ms * 1_000) / CALLS }
}

export const fanout: Family = {
  repetitions: 11,
  cases: { harness, floor },
  figures: [
    {
      name: 'fanout',
      unit: 'CPU µs a call',
      target: 15,
      value: (median) => median('harness.us'),
      floor: (median) => median('floor.us'),
    },
  ],
}
