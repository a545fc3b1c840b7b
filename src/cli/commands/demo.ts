// `terret demo`: one scripted session in memory, with its events.
import { Harness, scripted } from '../../index.ts'
import type { Call } from '../args.ts'
import { EXIT } from '../exit.ts'
import { print, printJson } from '../present/print.ts'

export async function demo(call: Call): Promise<number> {
  const harness = new Harness({ model: scripted(['This answer was scripted: the demo has no language model.']) })
  const stream = harness.stream('Say something.')
  for await (const event of stream) {
    if (call.is('json')) printJson(event)
    else print(`${String(event.seq).padStart(3)}  ${event.type}`)
  }
  const result = await stream.result
  if (!call.is('json')) print(`\n${result.status}: ${result.text}`)
  await harness.close()
  return result.status === 'completed' ? EXIT.ok : EXIT.failed
}
