// The scripted model: a first-class model for tests and examples.
import { runtimeClock } from '../../src/runtime/state/machine.ts'
import { describe, expect, it } from 'vitest'
import { type Delta, type Model, type Request, scripted } from '../../src/index.ts'

const request: Request = { session: 's', seq: 4, instructions: '', tools: [], messages: [], allow: 'all', boost: false }

function ask(
  model: Model,
  signal = new AbortController().signal,
): { readonly answer: ReturnType<Model['call']>; readonly deltas: Delta[]; readonly slept: number[] } {
  const deltas: Delta[] = []
  const slept: number[] = []
  const sleep = async (ms: number): Promise<void> => void slept.push(ms)
  return {
    answer: model.call(request, { signal, emit: (delta) => deltas.push(delta), sleep, clock: runtimeClock }),
    deltas,
    slept,
  }
}

describe('the scripted model', () => {
  it('B-SCRIPT-1: replies in order with text, reasoning and calls, and fails loudly when the script has run out', async () => {
    const model = scripted(['hello', { reasoning: 'hm', text: 'so', calls: [{ tool: 'look', args: { a: 1 } }] }])
    expect(await ask(model).answer).toMatchObject({
      type: 'reply',
      parts: [{ type: 'text', text: 'hello' }],
      finish: 'stop',
    })
    expect(await ask(model).answer).toMatchObject({
      parts: [{ type: 'reasoning' }, { type: 'text' }],
      calls: [{ tool: 'look', args: '{"a":1}' }],
      finish: 'calls',
    })
    expect(await ask(model).answer).toMatchObject({ type: 'failure', class: 'bad_request', retryable: false })
  })

  it('B-SCRIPT-2: streams deltas, waits by the clock it is given, and adds up to its reply', async () => {
    const { answer, deltas, slept } = ask(scripted([{ deltas: ['a', 'b'], delayMs: 50 }]))
    expect(await answer).toMatchObject({ parts: [{ type: 'text', text: 'ab' }] })
    expect(deltas.map((delta) => delta.text)).toEqual(['a', 'b'])
    expect(slept).toEqual([50])
  })

  it('B-SCRIPT-3: fails with any class, stalls until aborted, or answers by a function of the request', async () => {
    expect(await ask(scripted([{ error: 'rate_limit', retryAfterMs: 70 }])).answer).toMatchObject({
      class: 'rate_limit',
      retryable: true,
      retryAfterMs: 70,
    })
    const controller = new AbortController()
    const stalled = ask(scripted([{ stall: true }]), controller.signal).answer
    controller.abort()
    expect(await stalled).toMatchObject({ type: 'failure' })
    expect(await ask(scripted((asked, n) => `${asked.seq}-${n}`)).answer).toMatchObject({ parts: [{ text: '4-0' }] })
  })
})
