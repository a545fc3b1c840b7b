// What a page sees of a reply while it is written: arguments of calls, ends of thoughts, and a structured answer as far as it is.
import { EventType } from '@ag-ui/core'
import { uiMessageChunkSchema } from 'ai'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, type Model } from '../../src/index.ts'
import { readPartialJson } from '../../src/ui/partial-json.ts'
import { make, moment } from '../runtime/scene.ts'
import { agUiServer, chatServer, framesOf, post, type Seen, userMessage } from './stage.ts'

const look = defineTool({
  name: 'look',
  description: 'Looks.',
  input: z.object({ city: z.string() }),
  effect: 'read',
  execute: async ({ city }) => `4 °C in ${city}`,
})
const ARGS = ['{"city":', '"Os', 'lo"}']

/** Thinks, says a word, and calls `look` in pieces; `between` waits before the reply is whole. Then it answers. */
function writer(between: () => Promise<void> = async () => {}): Model {
  return {
    name: 'writer',
    call: async ({ messages }, { emit }) => {
      if (messages.some(({ role }) => role === 'tool'))
        return { type: 'reply', parts: [{ type: 'text', text: 'Cold.' }], calls: [], finish: 'stop', usage: null }
      emit({ kind: 'reasoning', part: 0, text: 'I look.' })
      for (const text of ARGS) emit({ kind: 'arguments', part: 1, text, proposed: { tool: 'look', index: 0 } })
      await between()
      const parts = [{ type: 'reasoning', text: 'I look.' }] as const
      const calls = [{ id: 'c1', tool: 'look', args: ARGS.join('') }]
      return { type: 'reply', parts, calls, finish: 'calls', usage: null }
    },
  }
}

const chatBody = (text: string, id = 'w') => ({ id, messages: [userMessage(text)], trigger: 'submit-message' })
const typesOf = (frames: readonly Seen[]) => frames.map(({ data }) => data['type'])

describe('a page while a reply is written', () => {
  it('B-STREAM2-6: arguments come as they are written, and a thought ends when something else begins', async () => {
    const url = await chatServer(make(writer(), { tools: [look] }))
    const frames = await framesOf(await post(url, chatBody('Go.')))
    for (const { data } of frames)
      await expect(uiMessageChunkSchema().validate?.(data)).resolves.toMatchObject({ success: true })
    const types = typesOf(frames)
    const begin = types.indexOf('tool-input-start')
    expect(types.slice(begin - 1, begin + 5)).toEqual([
      'reasoning-end',
      'tool-input-start',
      'tool-input-delta',
      'tool-input-delta',
      'tool-input-delta',
      'tool-input-available',
    ])
    expect(types.filter((type) => type === 'reasoning-end')).toHaveLength(1)
    expect(types.filter((type) => type === 'tool-input-start')).toHaveLength(1)
    const inputs = frames.filter(({ data }) => String(data['type']).startsWith('tool-'))
    expect(new Set(inputs.map(({ data }) => data['toolCallId'])).size).toBe(1)
    const written = inputs.map(({ data }) => (data['inputTextDelta'] ?? '') as string).join('')
    expect(written).toBe(ARGS.join(''))
  })

  it('B-STREAM2-6: from each position a reader goes on without gap and without duplicate', async () => {
    const [spoke, gate] = [moment(), moment()]
    const harness = make(
      writer(async () => {
        spoke.come()
        await gate.here
      }),
      { tools: [look] },
    )
    const url = await chatServer(harness)
    const reading = framesOf(await post(url, chatBody('Go.')))
    await spoke.here
    const cut = await fetch(`${url}/w/stream`)
    gate.come()
    const [frames, again] = [await reading, await framesOf(cut)]
    const shown = (all: readonly Seen[]) => all.map(({ data }) => data)
    expect(shown(again).filter(({ type }) => type === 'tool-input-start')).toHaveLength(1)
    for (const [i, { id }] of frames.entries()) {
      if (id === null) continue
      const rest = await framesOf(await fetch(`${url}/w/stream?after=${encodeURIComponent(id)}`))
      const missed = shown(frames.slice(i + 1)).filter(({ type }) => !/-(start|delta|end|step)$/.test(String(type)))
      const got = shown(rest).filter(({ type }) => !/-(start|delta|end|step)$/.test(String(type)))
      expect(got).toEqual(missed)
    }
    await harness.close()
  })

  it('B-STREAM2-6: a call that gets another id than it was written under is ended, and shown under its own', async () => {
    const [spoke, gate] = [moment(), moment()]
    const harness = make(
      writer(async () => {
        spoke.come()
        await gate.here
      }),
      { tools: [look] },
    )
    const url = await chatServer(harness)
    const reading = framesOf(await post(url, chatBody('Go.')))
    await spoke.here
    await harness.session('w').send('And Rome?')
    gate.come()
    const frames = await reading
    const error = frames.find(({ data }) => data['type'] === 'tool-input-error')
    const made = frames.find(({ data }) => data['type'] === 'tool-input-available')
    expect(error?.data['toolCallId']).not.toBe(made?.data['toolCallId'])
    const done = frames.find(({ data }) => data['type'] === 'tool-output-available')
    expect(done?.data['toolCallId']).toBe(made?.data['toolCallId'])
    await harness.close()
  })

  it('B-STREAM2-6: AG-UI has the same: pieces of arguments, and one end', async () => {
    const url = await agUiServer(make(writer(), { tools: [look] }))
    const messages = [{ id: 'm1', role: 'user', content: 'Go.' }]
    const body = { threadId: 'g', runId: 'r1', messages, tools: [], context: [], state: {}, forwardedProps: {} }
    const types = typesOf(await framesOf(await post(url, body)))
    const begin = types.indexOf(EventType.TOOL_CALL_START)
    expect(types.slice(begin - 2, begin + 6)).toEqual([
      'REASONING_MESSAGE_END',
      'REASONING_END',
      'TOOL_CALL_START',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT',
    ])
  })

  it('B-STREAM2-7: a structured answer is shown as far as it is written, and its part becomes the answer', async () => {
    const text = '{"city":"Oslo","days":[{"at":1},{"at":2}]}'
    const model: Model = {
      name: 'drafter',
      call: async (_, { emit }) => {
        const proposed = { tool: 'final_result', index: 0 }
        for (const letter of text) emit({ kind: 'arguments', part: 0, text: letter, proposed })
        const calls = [{ id: 'c1', tool: 'final_result', args: text }]
        return { type: 'reply', parts: [], calls, finish: 'calls', usage: null }
      },
    }
    const schema = z.object({ city: z.string(), days: z.array(z.object({ at: z.number() })) })
    const url = await chatServer(make(model, { output: { schema } }))
    const frames = await framesOf(await post(url, chatBody('Go.')))
    const drafts = frames.filter(({ data }) => data['type'] === 'data-output').map(({ data }) => data)
    expect(drafts.length).toBeGreaterThan(3)
    expect(new Set(drafts.map(({ id }) => id)).size).toBe(1)
    expect(drafts).toContainEqual(expect.objectContaining({ data: { city: 'Oslo', days: [{ at: 1 }] } }))
    expect(drafts.at(-1)?.['data']).toEqual(JSON.parse(text))
    expect(typesOf(frames).filter((type) => String(type).startsWith('tool-'))).toEqual([])
  })

  it('B-STREAM2-7: the begin of a JSON text is the value it is so far', () => {
    const whole = '{"a":"x\\"y","b":[1,2.5,{"c":null}],"d":true,"e":"\\u00e9"}'
    for (let end = 1; end <= whole.length; end++) {
      const value = readPartialJson(whole.slice(0, end))
      expect(JSON.parse(whole)).toMatchObject(pruned(value))
    }
    expect(readPartialJson(whole)).toEqual(JSON.parse(whole))
    for (const odd of ['', ' ', 'x', '"', '{"a', ']', '{"a":}']) expect(() => readPartialJson(odd)).not.toThrow()
  })
})

/** Without the texts and numbers that stand last, which may be half. */
function pruned(value: unknown): object {
  const keys = Object.keys(value as object)
  const last = keys.at(-1)
  return Object.fromEntries(Object.entries(value as object).filter(([key]) => key !== last))
}
