// What providers really answered, as transcripts: each recorded answer, written down as a program of that provider would,
// is imported, and a model goes on with it.
import { expect, it } from 'vitest'
import { Harness, memory, scripted } from '../../../src/index.ts'
import { importTranscript, readLog, type TranscriptFormat } from '../../../src/replay.ts'
import { ourReading, type Said } from '../../models/oracle-said.ts'
import { committedStreams, type Recording, sharedStreams } from '../../models/oracle-streams.ts'

const QUESTION = 'What is it like?'

/** The messages of a program that keeps them. Every second call has no result: the program was stopped. */
function transcriptOf({ protocol, bytes }: Recording, said: Said): readonly [TranscriptFormat, unknown] {
  const answered = said.calls.filter((_, i) => i % 2 === 0)
  const texts = said.parts.filter(({ text }) => text !== '')
  if (protocol === 'messages') {
    const blocks = texts.map(({ type, text }) =>
      type === 'text' ? { type, text } : { type: 'thinking', thinking: text },
    )
    const calls = said.calls.map(({ id, tool, args }) => ({ type: 'tool_use', id, name: tool, input: args }))
    const results = answered.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: 'done' }))
    const messages = [
      { role: 'user', content: QUESTION },
      { role: 'assistant', content: [...blocks, ...calls] },
      { role: 'user', content: results },
    ]
    return ['anthropic', { messages }]
  }
  if (protocol === 'responses') {
    const results = answered.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: 'done' }))
    return ['openai', { input: [{ role: 'user', content: QUESTION }, ...outputOf(bytes), ...results] }]
  }
  const messages = [
    { role: 'user', content: QUESTION },
    {
      role: 'assistant',
      content: texts.map(({ text }) => text).join(''),
      tool_calls: said.calls.map(({ id, tool, args }) => ({
        id,
        type: 'function',
        function: { name: tool, arguments: JSON.stringify(args) },
      })),
    },
    ...answered.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: 'done' })),
  ]
  return ['openai', messages]
}

/** The items of an answer, as the provider itself lists them at its end. */
function outputOf(bytes: Uint8Array): readonly unknown[] {
  const lines = Buffer.from(bytes).toString().split('\n')
  const events = lines.flatMap((line) => (line.startsWith('data: {') ? [eventIn(line.slice('data: '.length))] : []))
  return events.findLast(({ response }) => (response?.output?.length ?? 0) > 0)?.response?.output ?? []
}

type AnswerEvent = { readonly response?: { readonly output?: readonly unknown[] } | null }

/** Some recordings break off within a line. */
function eventIn(line: string): AnswerEvent {
  try {
    return JSON.parse(line) as AnswerEvent
  } catch {
    return {}
  }
}

it.each([...committedStreams, ...sharedStreams].map((recording) => [recording.name, recording] as const))(
  'B-FOREIGN-2: what %s said is imported, each call has one result, and a model goes on (F7)',
  async (_, recording) => {
    const [format, value] = transcriptOf(recording, ourReading(recording))
    const store = memory()
    await importTranscript(store, JSON.stringify(value), { format, id: 's' })
    const events = await readLog(store, 's')
    const calls = events.flatMap((event) =>
      event.type === 'agent.message' ? event.calls.map((_call, i) => `${event.seq}.${i}`) : [],
    )
    const results = events.flatMap((event) => (event.type === 'agent.tool_result' ? [event.call] : []))
    expect(results.sort()).toEqual(calls.sort())
    const harness = new Harness({ model: scripted(['Here I go on.']), store })
    expect(await harness.session('s').run('And now?')).toMatchObject({ status: 'completed', text: 'Here I go on.' })
    await harness.close()
  },
)
