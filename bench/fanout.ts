// `fanout`: what one call of a wide turn costs. Turns of 100 calls at once, in memory: as the first thing a process does
// (`fanout.cold`), and once the process is warm.
import { Harness, scripted } from '../src/index.ts'
import { type Case, cpuMs, type Family, medianOf } from './family.ts'
import { argsOf, LIMITS, lookup, resultOf } from './turn.ts'

export const CALLS = 100
const WARM_UP = 1_000
const TURNS = 200
const numbers = Array.from({ length: CALLS }, (_, n) => n)

export const turn = async (): Promise<number> => {
  const calls = numbers.map((n) => ({ tool: 'lookup', args: argsOf(n) }))
  const model = scripted([{ calls }, 'done'])
  const subject = new Harness({ model, tools: [lookup], limits: { ...LIMITS, parallel: CALLS }, secrets: {} })
  const begun = cpuMs()
  const result = await subject.run('go')
  const ms = cpuMs() - begun
  await subject.close()
  if (result.usage.toolCalls !== CALLS) throw new Error(`${result.usage.toolCalls} calls were made`)
  return (ms * 1_000) / CALLS
}

const bare = async (): Promise<number> => {
  const tool = async (args: unknown): Promise<string> => resultOf(args)
  const begun = cpuMs()
  const calls = numbers.map((n) => ({ id: `call_${n}`, args: JSON.stringify(argsOf(n)) }))
  const results = await Promise.all(calls.map(async ({ id, args }) => ({ id, content: await tool(JSON.parse(args)) })))
  const messages: unknown[] = ['go', calls, ...results]
  const ms = cpuMs() - begun
  if (messages.length !== CALLS + 2) throw new Error('a result is missing')
  return (ms * 1_000) / CALLS
}

/** The first, and the median of the last. */
function both(once: () => Promise<number>): Case {
  return async () => {
    const coldUs = await once()
    for (let n = 0; n < WARM_UP; n++) await once()
    const warm: number[] = []
    for (let n = 0; n < TURNS; n++) warm.push(await once())
    return { coldUs, us: medianOf(warm) }
  }
}

export const fanout: Family = {
  repetitions: 7,
  cases: { harness: both(turn), floor: both(bare) },
  figures: [
    {
      name: 'fanout',
      unit: 'CPU µs a call',
      target: 15,
      value: (median) => median('harness.us'),
      floor: (median) => median('floor.us'),
    },
    {
      name: 'fanout.cold',
      unit: 'CPU µs a call',
      target: 60,
      value: (median) => median('harness.coldUs'),
      floor: (median) => median('floor.coldUs'),
    },
  ],
}
