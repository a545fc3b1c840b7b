// The loop directive of a model without tools: a tagged block, read tolerantly and checked strictly.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineTool, memory, type Script, scripted, type Tool } from '../../src/index.ts'
import type { Request } from '../../src/ports/model.ts'
import { directiveTool, taggedDirective } from '../../src/memory/index.ts'
import { blockIn } from '../../src/memory/tagged-directive.ts'
import { Harness } from '../../src/index.ts'
import { StillClock } from '../contract/fixture.ts'

const block = (value: unknown): string =>
  `<loop_directive>${typeof value === 'string' ? value : JSON.stringify(value)}</loop_directive>`
const sleep = { outcome: 'sleep', summary: 'all done' }

function staged(script: Script, more: readonly Tool[] = []) {
  const clock = new StillClock()
  const store = memory({ clock })
  const requests: Request[] = []
  const inner = scripted(script)
  const model = taggedDirective({
    name: 'plain',
    call: (request, context) => {
      requests.push({ ...request, messages: request.messages.slice() })
      return inner.call(request, context)
    },
  })
  const tools = [directiveTool({ store }), ...more]
  return { harness: new Harness({ model, store, system: { clock }, tools }), store, requests, clock }
}

describe('the loop directive of a model without tools', () => {
  it('B-DIRECTIVE-20: the block at the end of a text is the directive, and the text before it the answer (S4-8)', async () => {
    const wakes = [{ reason: 'tea', delay_seconds: 60, key: 'tea' }]
    const learnings = [{ kind: 'correction', title: 'Tea', detail: 'Two minutes, not five.' }]
    const { harness, store, requests } = staged([`The tea is on.\n\n${block({ ...sleep, wakes, learnings })}`])
    const result = await harness.run('Make tea.')
    expect(result).toMatchObject({ status: 'completed', text: 'The tea is on.' })
    // The model is asked once, without tools, and told how to write the block.
    expect(requests).toHaveLength(1)
    expect(requests[0]).toMatchObject({ tools: [] })
    expect(requests[0]?.instructions).toContain('<loop_directive>')
    const { events } = await store.read(result.sessionId, 0)
    expect(events.filter(({ type }) => type === 'wake.scheduled' || type === 'note.added')).toMatchObject([
      { type: 'wake.scheduled', key: 'wake:tea' },
      { type: 'note.added', kind: 'learning' },
    ])
    await harness.close()
  })

  it('B-DIRECTIVE-21: a block is read tolerantly: fences, prose, trailing commas, a lost end (TRAP-30)', () => {
    const body = '{"outcome": "sleep", "summary": "all done",}'
    const spellings = [
      block(sleep),
      block(body),
      block(`\n\`\`\`json\n${body}\n\`\`\`\n`),
      block(`Here it is: ${body}`),
      `\`\`\`\n${block(sleep)}\n\`\`\``,
      `<loop_directive>${body}`,
      `${block({ outcome: 'continue', summary: 'an example' })} was an example.\n${block(sleep)}`,
    ]
    for (const text of spellings) expect(blockIn(`Yes.\n${text}`)?.directive).toEqual(sleep)
    expect(blockIn(`Yes.\n\n${block(sleep)}\n`)?.before).toBe('Yes.')
  })

  it('B-DIRECTIVE-22: a block that is none is part of the answer, and the session sleeps (S4-9)', async () => {
    const wrong = [
      block('not json at all'),
      block({ outcome: 'dream', summary: 'x' }),
      block({ outcome: 'sleep' }),
      block([sleep]),
      block({ ...sleep, wakes: Array.from({ length: 4 }, () => ({ reason: 'r', delay_seconds: 60 })) }),
      block({ ...sleep, tool_request: { input: {} } }),
      block({ ...sleep, tool_request: { name: 'no_such_tool', input: {} } }),
      `${block({ outcome: 'continue', summary: 'x' })} and more words`,
    ]
    for (const text of wrong) {
      const { harness, store } = staged([`Yes. ${text}`])
      const result = await harness.run('Is it?')
      expect(result).toMatchObject({ status: 'completed', text: `Yes. ${text}` })
      expect(await store.card(result.sessionId)).toMatchObject({ status: 'idle', wakes: 0 })
      await harness.close()
    }
    expect(blockIn('Yes. <loop_directive>{"outcome": "sleep", "summary": "a', true)).toBeNull()
  })

  it('B-DIRECTIVE-23: "continue" in a block begins another run, and the model reads its own words as it wrote them', async () => {
    const { harness, store, requests } = staged([
      `One. ${block({ outcome: 'continue', summary: 'one of two' })}`,
      `Two. ${block({ outcome: 'sleep', summary: 'two of two' })}`,
      'Three.',
    ])
    const { sessionId } = await harness.run('Count.')
    expect((await harness.session(sessionId).run('And?')).text).toBe('Three.')
    expect(requests).toHaveLength(3)
    const texts = (requests[2]?.messages ?? []).flatMap((message) => {
      if (message.role !== 'assistant') return []
      return [message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')]
    })
    expect(texts).toHaveLength(2)
    for (const [i, summary] of ['one of two', 'two of two'].entries())
      expect(blockIn(texts[i] ?? '')?.directive.summary).toBe(summary)
    const { events } = await store.read(sessionId, 0)
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(3)
    await harness.close()
  })

  it('B-DIRECTIVE-24: a tool that is asked for in a block is called; one that is answered from outside parks the session (S4-11, S4-12)', async () => {
    const ask = defineTool({
      name: 'ask_boss',
      description: 'Asks the boss',
      input: z.object({ question: z.string() }),
    })
    const { harness, requests } = staged(
      [
        `I must ask. ${block({ ...sleep, tool_request: { name: 'ask_boss', input: { question: 'May I?' } } })}`,
        'The boss says yes.',
      ],
      [ask],
    )
    const session = await harness.open()
    const parked = await session.run('May we?')
    expect(parked).toMatchObject({ status: 'requires_action', stopReason: 'answer_required' })
    expect(parked.pending).toMatchObject([{ tool: 'ask_boss', args: { question: 'May I?' } }])
    await session.answer({ callId: parked.pending[0]?.callId ?? '', content: 'Yes, go ahead.' })
    expect((await session.run()).text).toBe('The boss says yes.')
    expect(requests).toHaveLength(2)
    expect(JSON.stringify(requests[1]?.messages)).toContain('Yes, go ahead.')
    expect(requests[1]?.messages.every(({ role }) => role !== 'tool')).toBe(true)
    await harness.close()
  })

  it('B-DIRECTIVE-25: for a reply that is only the block, its summary is the text', async () => {
    const { harness, requests } = staged([block(sleep)])
    expect(await harness.run('Well?')).toMatchObject({ status: 'completed', text: 'all done' })
    expect(requests).toHaveLength(1)
    await harness.close()
  })
})
