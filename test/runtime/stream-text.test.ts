// stream.text: the answer as a reader of plain text gets it. Streams by their events are stream.test.ts.
import { describe, expect, it } from 'vitest'
import { Fault, type Model, type RunStream, type Script } from '../../src/index.ts'
import { calls, make, moment, STORAGES, storeOf, tool, waiting } from './scene.ts'

async function pieces(stream: RunStream): Promise<readonly string[]> {
  const texts: string[] = []
  for await (const text of stream.text) texts.push(text)
  return texts
}

describe.each(STORAGES)('the text of a stream on %s', (storage) => {
  it('B-STREAM-16: it is the answer as it comes, without reasoning and calls, and with a blank line between two replies', async () => {
    const script: Script = [
      { reasoning: 'Hm.', deltas: ['Let me ', 'look.'], calls: [{ tool: 'look', args: {} }] },
      { calls: [{ tool: 'look', args: {} }] },
      { reasoning: 'Aha.', deltas: ['It is ', '4 °C.'] },
    ]
    const stream = make(script, { tools: [tool('look')], store: storeOf(storage) }).stream('How warm is it?')
    expect(await pieces(stream)).toEqual(['Let me ', 'look.', '\n\nIt is ', '4 °C.'])
    expect(await stream.result).toMatchObject({ status: 'completed', text: 'It is 4 °C.' })
  })

  it('B-STREAM-16: a late reader gets the replies before it whole, once, then what is said so far and the rest', async () => {
    const [spoke, gate] = [moment(), moment()]
    const model: Model = {
      name: 'speaker',
      call: async ({ messages }, { emit }) => {
        if (messages.length > 1)
          return { type: 'reply', parts: [{ type: 'text', text: 'Second.' }], calls: [], finish: 'stop', usage: null }
        emit({ kind: 'text', part: 0, text: 'Hello, ' })
        spoke.come()
        await gate.here
        emit({ kind: 'text', part: 0, text: 'world' })
        // The last piece is not streamed.
        const parts = [{ type: 'text', text: 'Hello, world.' }] as const
        return { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
      },
    }
    const session = await make(model, { store: storeOf(storage) }).open()
    const own = session.run('Say it.')
    await spoke.here
    const late = session.stream()
    const reading = pieces(late)
    gate.come()
    expect((await reading).join('')).toBe('Hello, world.')
    await own
    await session.run('Again.')
    expect(await pieces(session.stream())).toEqual(['Hello, world.', '\n\nSecond.'])
  })
})

describe('the text of a stream', () => {
  it('B-STREAM-16: it may be asked for after the stream began', async () => {
    const [spoke, gate] = [moment(), moment()]
    const model: Model = {
      name: 'speaker',
      call: async (_, { emit }) => {
        emit({ kind: 'text', part: 0, text: 'One, ' })
        spoke.come()
        await gate.here
        return { type: 'reply', parts: [{ type: 'text', text: 'One, two.' }], calls: [], finish: 'stop', usage: null }
      },
    }
    const stream = make(model).stream('Count.')
    await spoke.here
    const text = stream.text[Symbol.asyncIterator]()
    expect(await text.next()).toEqual({ done: false, value: 'One, ' })
    gate.come()
    expect(await text.next()).toEqual({ done: false, value: 'two.' })
    expect(await text.next()).toEqual({ done: true, value: undefined })
  })

  it('B-STREAM-17: leaving it interrupts the run that its stream started, also before anything came, unless it is detached', async () => {
    const harness = make([{ stall: true, deltas: ['Well, '] }, { stall: true }])
    const left = harness.stream('Go.')
    for await (const _ of left.text) break
    expect(await left.result).toMatchObject({ status: 'interrupted' })
    const early = harness.stream('Go.')
    await early.text[Symbol.asyncIterator]().return?.()
    expect(await early.result).toMatchObject({ status: 'interrupted' })
    const { tool: slow, go } = waiting('slow')
    const script: Script = [{ text: 'Wait.', ...calls('slow') }, 'Done.']
    const detached = make(script, { tools: [slow] }).stream('Go.', { detach: true })
    for await (const _ of detached.text) break
    go()
    expect(await detached.result).toMatchObject({ status: 'completed', text: 'Done.' })
  })

  it('B-STREAM-17: a stream that is read by its events refuses to be read by its text, and the other way round', async () => {
    const byEvents = make(['Yes.']).stream('Go.')
    for await (const _ of byEvents);
    expect(() => byEvents.text[Symbol.asyncIterator]()).toThrow(Fault)
    const byText = make(['Yes.']).stream('Go.')
    expect(await pieces(byText)).toEqual(['Yes.'])
    expect(() => byText[Symbol.asyncIterator]()).toThrow('is read by its text')
  })
})
