// Pictures and files in the results of tools: from what a handler returns to the bytes that a provider gets, in the log, in exports,
// in estimates, and what is left out.
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type Message,
  output,
  type OutputPart,
  type Request,
  scripted,
  type Tool,
} from '../../src/index.ts'
import { Transcript } from '../../src/kernel/transcript.ts'
import { exportSession, importSession } from '../../src/replay.ts'
import type { ChaosRequest, Dialect } from '../../src/testing/index.ts'
import { countRequestChars } from '../../src/runtime/money/usage-estimate.ts'
import { sizeOfMessage } from '../../src/view/session-history.ts'
import {
  conversation,
  DIALECTS,
  eventsOf,
  harnessOf,
  ofType,
  stage,
  type StageOptions,
  STORAGES,
  storeOf,
} from '../models/hosted-stage.ts'
import { request } from '../models/context.ts'
import { redigest } from '../../sim/forge-file.ts'

const PNG = Buffer.from('iVBORw0KGgoAAAANSUhEUg==', 'base64')
const PDF = Buffer.from('%PDF-1.7 nothing')
const PLACES = STORAGES.flatMap((storage) => DIALECTS.map((dialect) => ({ storage, dialect })))
const CALLS = [{ calls: [{ tool: 'shoot', args: {}, id: 'call_1' }] }, 'A dot.', 'Still a dot.']

function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

function shooting(
  parts: readonly OutputPart[] | ((keep: (data: Uint8Array) => OutputPart) => OutputPart[]),
  ok = true,
): Tool {
  return defineTool({
    name: 'shoot',
    description: 'Takes a picture.',
    input: z.object({}),
    effect: 'read',
    execute: (_args, { keep }) => {
      const given = typeof parts === 'function' ? parts((data) => keep(data, 'image/png')) : parts
      return output({ ok, content: 'One picture.', parts: given })
    },
  })
}

const SHOT: readonly OutputPart[] = [
  { type: 'image', media: 'image/png', data: PNG, name: 'shot.png' },
  { type: 'file', media: 'application/pdf', data: PDF.toString('base64'), name: 'a.pdf' },
]

/** The entries of the conversation after the call. */
function toldIn(asked: ChaosRequest | undefined): readonly unknown[] {
  const said = conversation(asked)
  const at = said.findIndex((entry) => /"(tool_use|function_call|tool_calls)"/.test(JSON.stringify(entry)))
  return said.slice(at + 1)
}

const url = (media: string, data: Buffer): string => `data:${media};base64,${data.toString('base64')}`
const OWN_FORM: Readonly<Record<Dialect, readonly unknown[]>> = {
  messages: [
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'call_1',
          content: [
            { type: 'text', text: 'One picture.' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG.toString('base64') } },
            {
              type: 'document',
              source: { type: 'base64', media_type: 'application/pdf', data: PDF.toString('base64') },
              title: 'a.pdf',
            },
          ],
        },
      ],
    },
  ],
  responses: [
    {
      type: 'function_call_output',
      call_id: 'call_1',
      output: [
        { type: 'input_text', text: 'One picture.' },
        { type: 'input_image', detail: 'auto', image_url: url('image/png', PNG) },
        { type: 'input_file', filename: 'a.pdf', file_data: url('application/pdf', PDF) },
      ],
    },
  ],
  chat: [
    {
      role: 'tool',
      tool_call_id: 'call_1',
      content:
        'One picture.\n[file shot.png (image/png) is in the message after the results]\n' +
        '[file a.pdf (application/pdf) is in the message after the results]',
    },
    {
      role: 'user',
      content: [
        { type: 'text', text: '[from the result of shoot]' },
        { type: 'image_url', image_url: { url: url('image/png', PNG) } },
        { type: 'file', file: { filename: 'a.pdf', file_data: url('application/pdf', PDF) } },
      ],
    },
  ],
}

describe.each(PLACES)('a result with files over $dialect, on $storage', ({ storage, dialect }) => {
  it('B-PART-1: they lie beside the log by hash, and reach the provider in its own form, again in every request', async () => {
    const { harness, store, chaos } = await stage(CALLS, { storage, dialect, tools: [shooting(SHOT)] })
    const result = await harness.run('Look.')
    expect(result).toMatchObject({ status: 'completed', text: 'A dot.' })
    const refs = [
      { type: 'blob', hash: sha256(PNG), bytes: PNG.length, media: 'image/png', name: 'shot.png' },
      { type: 'blob', hash: sha256(PDF), bytes: PDF.length, media: 'application/pdf', name: 'a.pdf' },
    ]
    const events = await eventsOf(store, result.sessionId)
    expect(ofType(events, 'agent.tool_result')).toMatchObject([{ status: 'ok', content: 'One picture.', parts: refs }])
    expect(JSON.stringify(events)).not.toContain(PNG.toString('base64'))
    expect(result.calls[0]?.parts).toEqual(refs)
    await harness.session(result.sessionId).run('And now?')
    const unmarked = (entry: unknown): unknown =>
      JSON.parse(JSON.stringify(entry).replaceAll(',"cache_control":{"type":"ephemeral"}', ''))
    for (const asked of chaos.requests.slice(1)) {
      expect(toldIn(asked).slice(0, OWN_FORM[dialect].length).map(unmarked)).toMatchObject(OWN_FORM[dialect])
    }
    expect(chaos.requests.map(({ refused }) => refused)).toEqual([undefined, undefined, undefined])
    // The prompt cache holds: each request begins with the one before. Only Anthropic's marks move.
    const [, before = [], now = []] = chaos.requests.map((asked) => conversation(asked).map(unmarked))
    expect(now.slice(0, before.length)).toEqual(before)
  })
})

describe.each(DIALECTS)('a result with files over %s', (dialect) => {
  it('B-PART-2: a failed call may have them too, and the request is still taken', async () => {
    const { harness, chaos } = await stage(CALLS, { dialect, tools: [shooting(SHOT, false)] })
    expect(await harness.run('Look.')).toMatchObject({ status: 'completed' })
    expect(chaos.requests.map(({ refused }) => refused)).toEqual([undefined, undefined])
    expect(JSON.stringify(toldIn(chaos.requests[1]))).toContain(PNG.toString('base64'))
    expect(JSON.stringify(toldIn(chaos.requests[1]))).toContain('[failed: error]')
  })
})

async function ran(parts: Parameters<typeof shooting>[0], more: StageOptions = {}) {
  const made = await stage(CALLS, { tools: [shooting(parts)], ...more })
  const result = await made.harness.run('Look.')
  expect(result.status).toBe('completed')
  const [told] = ofType(await eventsOf(made.store, result.sessionId), 'agent.tool_result')
  return { ...made, result, told, sent: JSON.stringify(toldIn(made.chaos.requests[1])) }
}

describe('a result with files', () => {
  it.each([
    ['chat', 'deepseek:deepseek-chat'],
    ['chat', 'mistral:mistral-small'],
  ] as const)('B-PART-3: over %s, %s cannot show them and the result says what was left out', async (dialect, name) => {
    const script = [{ calls: [{ tool: 'shoot', args: {}, id: 'abcdefghi' }] }, 'I cannot see it.']
    const made = await stage(script, { dialect, hosted: { name }, tools: [shooting(SHOT)] })
    expect(await made.harness.run('Look.')).toMatchObject({ status: 'completed' })
    const sent = JSON.stringify(toldIn(made.chaos.requests[1]))
    expect(sent).toContain(`[file shot.png (image/png, ${PNG.length} bytes) cannot be shown to this model]`)
    expect(sent).not.toContain(PNG.toString('base64'))
  })

  const bad: readonly (readonly [string, OutputPart, string])[] = [
    [
      'a picture of 50 MB',
      { type: 'image', media: 'image/png', data: new Uint8Array(50_000_000) },
      'this image has 50000000 bytes; it must have from 1 to 33554432.',
    ],
    [
      'a picture that is none',
      { type: 'image', media: 'image/png', data: Buffer.from('some text'), name: 'x.png' },
      'x.png is no PNG, JPEG, GIF or WebP picture.',
    ],
    [
      'a picture of another type',
      { type: 'image', media: 'image/svg+xml', data: Buffer.from('<svg/>'), name: 'x.svg' },
      'x.svg is no PNG, JPEG, GIF or WebP picture.',
    ],
    [
      'a file as a picture',
      { type: 'image', media: 'application/pdf', data: PDF },
      'this image is no picture: its media type is application/pdf.',
    ],
    ['no media type', { type: 'file', media: 'pdf', data: PDF }, '"pdf" is no media type of this file.'],
    ['no base64', { type: 'file', media: 'application/pdf', data: '!!' }, 'The data of this file is not base64'],
    ['no kind', { type: 'video' } as unknown as OutputPart, 'A part of a result is an image, a file or a kept blob.'],
    ['no blob', { type: 'blob', hash: 'x', bytes: 1, media: 'image/png' }, 'A kept blob is given as'],
  ]

  it.each(bad)(
    'B-PART-4: %s is left out with a sentence, and the rest of the result stands',
    async (_what, part, why) => {
      const { told, sent } = await ran([part, SHOT[0] as OutputPart])
      expect(told).toMatchObject({
        status: 'ok',
        content: expect.stringContaining(`One picture.\n[left out: ${why}`) as unknown,
        parts: [{ hash: sha256(PNG) }],
        metadata: { parts_left_out: [{ code: 'invalid_part', message: expect.stringContaining(why) as unknown }] },
      })
      expect(sent).toContain('left out')
      expect(sent).toContain(PNG.toString('base64'))
    },
  )

  it('B-PART-4: the type of a picture is what its bytes say, and at most twenty parts are taken', async () => {
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3])
    const { told } = await ran(
      Array.from({ length: 21 }, () => ({ type: 'image', media: 'image/png', data: jpeg }) as const),
    )
    expect(told?.parts).toHaveLength(20)
    expect(told?.parts?.[0]?.media).toBe('image/jpeg')
    expect(told?.content).toContain('[left out: A result may have 20 pictures and files; it had 21.]')
  })

  it('B-PART-5: what was kept by the call may be a part, and bytes that hold a secret are not kept', async () => {
    const secret = 'correct-horse-battery'
    const holds = Buffer.concat([PNG, Buffer.from(`tEXt${secret}`)])
    const { told, sent, store } = await ran(
      (keep) => [keep(PNG), keep(holds), { type: 'image', media: 'image/png', data: holds }],
      {
        secrets: { HORSE: secret },
      },
    )
    expect(told?.parts?.map(({ media }) => media)).toEqual(['image/png', 'text/plain', 'text/plain'])
    expect(sent).toContain('held the secret HORSE and was not kept')
    expect(sent).not.toContain(holds.toString('base64'))
    expect(await store.blob(sha256(holds))).toBeNull()
  })

  it('B-PART-14: a hash alone shows no file of another session, and what the session kept before may be a part', async () => {
    const theirs = await ran(SHOT)
    const shot: OutputPart = { type: 'blob', hash: sha256(PNG), bytes: PNG.length, media: 'image/png' }
    const asked: Request[] = []
    const model = scripted((sent) => {
      asked.push(sent)
      return sent.messages.at(-1)?.role === 'tool' ? 'A dot.' : { calls: [{ tool: 'shoot' }] }
    })
    const harness = harnessOf({ model, store: theirs.store, tools: [shooting([shot])] })
    const { sessionId } = await harness.run('Look.')
    const [told] = ofType(await eventsOf(theirs.store, sessionId), 'agent.tool_result')
    expect(told?.parts).toBeUndefined()
    expect(told?.content).toBe(
      `One picture.\n[left out: this session has no blob ${sha256(PNG)}. Give the file itself.]`,
    )
    expect(JSON.stringify(asked)).not.toContain(PNG.toString('base64'))
    await harness.session(theirs.result.sessionId).run('Look again.')
    const results = ofType(await eventsOf(theirs.store, theirs.result.sessionId), 'agent.tool_result')
    expect(results.at(-1)?.parts).toEqual([shot])
  })

  it('B-PART-6: an export holds their bytes, without which it is no export', async () => {
    const { store, result } = await ran(SHOT)
    const portable = await exportSession(store, result.sessionId)
    const other = storeOf('sqlite')
    await importSession(other, JSON.parse(JSON.stringify(portable)))
    expect(Buffer.from((await other.blob(sha256(PNG)))?.data ?? [])).toEqual(PNG)
    const without = portable.filter((record) => record.type !== 'blob' || record.hash !== sha256(PNG))
    await expect(importSession(storeOf('memory'), redigest(without))).rejects.toMatchObject({
      code: 'invalid_input',
    })
  })

  it('B-PART-7: a picture is counted by its size for a model and not by its bytes, and goes when its result is cleared', async () => {
    const large = Buffer.concat([PNG, Buffer.alloc(1_000_000)])
    const { store, result } = await ran([{ type: 'image', media: 'image/png', data: large }])
    const transcript = new Transcript()
    for (const event of await eventsOf(store, result.sessionId)) transcript.take(event)
    const found = transcript.messages.find(({ role }) => role === 'tool') as Message
    expect(sizeOfMessage(found)).toBe(15_000 + 'One picture.'.length)
    expect(countRequestChars(request({ messages: [found] }))).toBeLessThan(20_000)
    transcript.take({ seq: transcript.seq + 1, at: 0, epoch: 1, type: 'context.compacted', cleared: 1_000 })
    expect(sizeOfMessage(transcript.messages.find(({ role }) => role === 'tool') as Message)).toBeLessThan(100)
  })

  it('B-PART-8: a hook sees references, may take them out, and cannot put others in', async () => {
    const seen: unknown[] = []
    const look = (change: (parts: readonly OutputPart[]) => readonly OutputPart[]) => ({
      type: 'after_tool_call' as const,
      run: ({ output: told }: { readonly output: ReturnType<typeof output> }) => {
        seen.push(told.parts)
        return { ...told, parts: change(told.parts ?? []) }
      },
    })
    const forged = { type: 'blob', hash: 'f'.repeat(64), bytes: 1, media: 'image/png' } as const
    const { told } = await ran(SHOT, { hooks: [look((parts) => [...parts.slice(0, 1), forged])] })
    expect(seen).toMatchObject([[{ type: 'blob', hash: sha256(PNG) }, { type: 'blob' }]])
    expect(told?.parts).toMatchObject([{ hash: sha256(PNG) }])
    const { told: none } = await ran(SHOT, { hooks: [look(() => [])] })
    expect(none?.parts).toBeUndefined()
  })
})
