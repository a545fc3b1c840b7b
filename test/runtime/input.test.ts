// What a caller may send: text, pictures and files, from the call to the bytes that a provider gets, and what is refused.
import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { ChaosRequest, Dialect } from '../../src/testing/index.ts'
import { Fault, type Input, scripted } from '../../src/index.ts'
import {
  conversation,
  DIALECTS,
  eventsOf,
  harnessOf,
  ofType,
  stage,
  STORAGES,
  storeOf,
} from '../models/hosted-stage.ts'

const PNG = Buffer.from('iVBORw0KGgo=', 'base64')
const PDF = Buffer.from('%PDF-1.7 nothing')
const PLACES = STORAGES.flatMap((storage) => DIALECTS.map((dialect) => ({ storage, dialect })))
type Fields = Readonly<Record<string, unknown>>

function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex')
}

/** What the user said, in the provider's own parts. */
function saidIn(request: ChaosRequest | undefined): readonly Fields[] {
  const [first] = conversation(request).filter(({ role }) => role === 'user')
  return (first?.['content'] ?? []) as readonly Fields[]
}

const OWN_FORM: Readonly<Record<Dialect, readonly unknown[]>> = {
  messages: [
    { type: 'text', text: 'See.' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG.toString('base64') } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF.toString('base64') } },
  ],
  responses: [
    { type: 'input_text', text: 'See.' },
    { type: 'input_image', image_url: `data:image/png;base64,${PNG.toString('base64')}` },
    { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF.toString('base64')}` },
  ],
  chat: [
    { type: 'text', text: 'See.' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } },
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF.toString('base64')}` } },
  ],
}

describe.each(PLACES)('input over $dialect, on $storage', ({ storage, dialect }) => {
  it('B-INPUT-1: pictures and files lie beside the log by their hash, and reach the provider in its own form, again in every request', async () => {
    const { harness, store, chaos } = await stage(['A dot.', 'Still a dot.'], { storage, dialect })
    const result = await harness.run([
      { type: 'text', text: 'See.' },
      { type: 'image', media: 'image/png', data: PNG },
      { type: 'file', media: 'application/pdf', data: PDF.toString('base64'), name: 'a.pdf' },
    ])
    expect(result).toMatchObject({ status: 'completed', text: 'A dot.' })
    const [message] = ofType(await eventsOf(store, result.sessionId), 'user.message')
    expect(message?.parts).toEqual([
      { type: 'text', text: 'See.' },
      { type: 'blob', hash: sha256(PNG), bytes: PNG.length, media: 'image/png' },
      { type: 'blob', hash: sha256(PDF), bytes: PDF.length, media: 'application/pdf', name: 'a.pdf' },
    ])
    expect(Buffer.from((await store.blob(sha256(PDF)))?.data ?? [])).toEqual(PDF)
    await harness.session(result.sessionId).run('And now?')
    for (const request of chaos.requests) expect(saidIn(request).slice(0, 3)).toMatchObject(OWN_FORM[dialect])
    expect(chaos.requests.map(({ refused }) => refused)).toEqual([undefined, undefined])
  })

  it('B-INPUT-2: a text file is read as text under its name, and what a provider cannot take is said in words', async () => {
    const { harness, chaos } = await stage(['I see.'], { storage, dialect })
    await harness.run([
      { type: 'file', media: 'text/csv', data: Buffer.from('a,b\n1,2'), name: 'numbers.csv' },
      { type: 'file', media: 'video/mp4', data: Buffer.from('RIFF'), name: 'song.mp4' },
    ])
    const said = JSON.stringify(saidIn(chaos.requests[0]))
    expect(said).toContain('numbers.csv')
    expect(said).toContain('a,b\\n1,2')
    expect(said).toContain('[file song.mp4 (video/mp4, 4 bytes) cannot be shown to this model]')
    expect(chaos.requests[0]?.refused).toBeUndefined()
  })
})

const WAV = Buffer.from('RIFF....WAVE')
const REMOTE = [
  { type: 'url', media: 'image/png', url: 'https://example.com/a.png' },
  { type: 'url', media: 'application/pdf', url: 'https://example.com/a.pdf', name: 'a.pdf' },
  { type: 'file_id', media: 'application/pdf', provider: 'anthropic', id: 'file_011' },
  { type: 'file_id', media: 'image/png', provider: 'openai', id: 'file-022' },
  { type: 'file', media: 'audio/wav', data: WAV, name: 'a.wav' },
] as const
const said = (text: string): unknown => ({ type: expect.stringMatching(/text$/) as unknown, text })
const HEARD = said(`[file a.wav (audio/wav, ${WAV.length} bytes) cannot be shown to this model]`)
const AT_ANTHROPIC = said(
  '[file without a name (application/pdf, file_011 at anthropic) cannot be shown to this model]',
)
const AT_OPENAI = said('[file without a name (image/png, file-022 at openai) cannot be shown to this model]')
const REMOTE_FORM: Readonly<Record<Dialect, readonly unknown[]>> = {
  messages: [
    { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
    { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' }, title: 'a.pdf' },
    { type: 'document', source: { type: 'file', file_id: 'file_011' } },
    AT_OPENAI,
    HEARD,
  ],
  responses: [
    { type: 'input_image', detail: 'auto', image_url: 'https://example.com/a.png' },
    { type: 'input_file', file_url: 'https://example.com/a.pdf' },
    AT_ANTHROPIC,
    { type: 'input_image', detail: 'auto', file_id: 'file-022' },
    HEARD,
  ],
  chat: [
    { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
    said('[file a.pdf (application/pdf, https://example.com/a.pdf) cannot be shown to this model]'),
    AT_ANTHROPIC,
    AT_OPENAI,
    { type: 'input_audio', input_audio: { data: WAV.toString('base64'), format: 'wav' } },
  ],
}

describe.each(DIALECTS)('pictures over %s', (dialect) => {
  it('B-INPUT-7: addresses, uploaded files and sounds go where the host takes them, and are said in words elsewhere', async () => {
    const { harness, store, chaos } = await stage(['I see.'], { dialect })
    const result = await harness.run(REMOTE)
    expect(result.status).toBe('completed')
    expect(chaos.requests[0]?.refused).toBeUndefined()
    const unmarked = JSON.stringify(saidIn(chaos.requests[0])).replaceAll(',"cache_control":{"type":"ephemeral"}', '')
    expect(JSON.parse(unmarked)).toEqual(REMOTE_FORM[dialect])
    expect(chaos.requests[0]?.headers['anthropic-beta']).toBe(
      dialect === 'messages' ? 'files-api-2025-04-14' : undefined,
    )
    const [message] = ofType(await eventsOf(store, result.sessionId), 'user.message')
    expect(message?.parts.slice(0, 4)).toEqual(REMOTE.slice(0, 4))
  })

  it('B-INPUT-6: a picture that a provider would refuse is said in words, and a JPEG by its common name is one', async () => {
    const { harness, chaos } = await stage(['A dot.'], { dialect })
    const most = dialect === 'messages' ? 5_242_880 : 20_971_520
    await harness.run([
      { type: 'image', media: 'image/jpg', data: PNG },
      { type: 'image', media: 'image/png', data: new Uint8Array(Math.ceil((most * 3) / 4) + 3), name: 'large.png' },
    ])
    const said = saidIn(chaos.requests[0])
    expect(JSON.stringify(said[0])).toContain('image/jpeg')
    expect(JSON.stringify(said[1])).toMatch(/large\.png \(image\/png, \d+ bytes\) cannot be shown/)
    expect(chaos.requests[0]?.refused).toBeUndefined()
  })
})

describe('input', () => {
  it('B-INPUT-3: a host that cannot see is told so in the place of the picture', async () => {
    const { harness, chaos } = await stage(['I cannot see it.'], {
      dialect: 'chat',
      hosted: { name: 'deepseek:deepseek-chat' },
    })
    await harness.run([{ type: 'image', media: 'image/png', data: PNG, name: 'dot.png' }])
    expect(JSON.stringify(conversation(chaos.requests[0]))).toContain(
      '[file dot.png (image/png, 8 bytes) cannot be shown',
    )
  })

  const png = { type: 'image', media: 'image/png' } as const
  const bad: readonly (readonly [string, Input, RegExp])[] = [
    ['nothing', '', /must not be empty/],
    ['blanks', ' \n ', /must not be empty/],
    ['no parts', [], /must not be empty/],
    ['empty parts', [{ type: 'text', text: ' ' }], /must not be empty/],
    [
      'no media type',
      [{ ...png, media: 'png', data: PNG }],
      /"png" is no media type of this image\. Write one such as image\/png/,
    ],
    ['a media type with more', [{ ...png, media: 'image/png; evil=1', data: PNG }], /is no media type/],
    [
      'a picture that is none',
      [{ ...png, media: 'application/pdf', data: PNG, name: 'x.pdf' }],
      /x\.pdf is no picture: its media type is application\/pdf/,
    ],
    ['no base64', [{ ...png, data: 'data:image/png;base64,iVBORw0KGgo=' }], /The data of this image is not base64/],
    ['base64 with an end in the middle', [{ ...png, data: 'iVBO=w0KGgo=' }], /not base64/],
    ['base64 that is one digit too long', [{ ...png, data: 'iVBOR' }], /not base64/],
    ['ten million blanks and one mark', [{ ...png, data: `${' '.repeat(10_000_000)}!` }], /not base64/],
    ['a file of nothing', [{ ...png, data: '' }], /has 0 bytes; it must have from 1 to 33554432/],
    ['a file too large', [{ ...png, data: new Uint8Array(33_554_433) }], /has 33554433 bytes/],
    ['a kind nobody knows', [{ type: 'video', data: 'x' }] as unknown as Input, /A part is a text, an image/],
    ['a text that is none', [{ type: 'text', text: 5 }] as unknown as Input, /A part is a text, an image/],
    ['no part', [null] as unknown as Input, /A part is a text, an image/],
    ['bytes that are none', [{ ...png, data: 5 }] as unknown as Input, /not base64, nor bytes/],
    ['a url that is none', [{ type: 'url', media: 'image/png', url: 'a.png' }], /is an http or https address/],
    [
      'a url of a file',
      [{ type: 'url', media: 'image/png', url: 'file:///etc/passwd' }],
      /is an http or https address/,
    ],
    ['a url with a password', [{ type: 'url', media: 'image/png', url: 'https://a:b@c.d/' }], /without a password/],
    ['a url of no type', [{ type: 'url', media: 'png', url: 'https://c.d/' }], /"png" is no media type of a url/],
    [
      'a file id that is none',
      [{ type: 'file_id', media: 'image/png', provider: 'openai', id: 'a b' }],
      /The id of an uploaded file/,
    ],
    ['a picture of 50 MB', [{ ...png, data: new Uint8Array(50_000_000) }], /has 50000000 bytes/],
    ['null', null as unknown as Input, /There is no message/],
    ['a number', 5 as unknown as Input, /There is no message/],
  ]

  it.each(bad)('B-INPUT-4: %s is refused with a sentence, and nothing is written', async (_what, input, sentence) => {
    const { harness, store, chaos } = await stage([])
    const session = await harness.open()
    for (const act of [() => harness.run(input), () => session.send(input), () => session.stream(input).result]) {
      const error: unknown = await act().then(
        () => null,
        (reason: unknown) => reason,
      )
      expect(error).toBeInstanceOf(Fault)
      expect(error).toMatchObject({ code: 'invalid_input', message: expect.stringMatching(sentence) as unknown })
    }
    expect((await eventsOf(store, session.id)).map(({ type }) => type)).toEqual(['session.created'])
    expect(await store.list({ limit: 10 })).toHaveLength(1)
    expect(chaos.requests).toEqual([])
  })

  it('B-INPUT-4: a harness that is given no input says so', async () => {
    const { harness, store } = await stage([])
    const nothing = undefined as unknown as Input
    const refused = { name: 'Fault', code: 'invalid_input' }
    await expect(harness.run(nothing)).rejects.toMatchObject(refused)
    await expect(harness.stream(nothing).result).rejects.toMatchObject(refused)
    expect(await store.list({ limit: 10 })).toEqual([])
  })

  it('B-INPUT-5: base64 may be broken into lines and need not be filled up', async () => {
    const { harness, store } = await stage(['Fine.'])
    const { sessionId } = await harness.run([{ ...png, data: ' iVBO\nRw0K\r\nGgo ' }])
    const [message] = ofType(await eventsOf(store, sessionId), 'user.message')
    expect(message?.parts).toMatchObject([{ type: 'blob', hash: sha256(PNG) }])
  })
})

describe.each(STORAGES)('blobs of other sessions, on %s', (storage) => {
  const secret = Buffer.from('what only the first session may know')
  const ref = { type: 'blob', hash: sha256(secret), bytes: secret.length, media: 'text/plain' } as const
  const play = async () => {
    const store = storeOf(storage)
    const seen: string[] = []
    const model = scripted(({ messages }) => {
      const last = messages.at(-1)
      if (last?.role === 'tool' && typeof last.content === 'string') seen.push(last.content)
      const [part] = last?.role === 'user' ? last.parts : []
      const asks = part?.type === 'text' && part.text.startsWith('Read')
      return asks ? { calls: [{ tool: 'retrieve_original', args: { token: `blob:${ref.hash}` } }] } : 'Done.'
    })
    const harness = harnessOf({ model, store, results: { compression: 'full' } })
    const owner = await harness.open()
    await owner.run([
      { type: 'text', text: 'See.' },
      { type: 'file', media: 'text/plain', data: secret },
    ])
    return { harness, owner, seen }
  }

  it('B-INPUT-8: neither a message, nor `session.blob`, nor a tool reads what another session keeps', async () => {
    const { harness, seen } = await play()
    const other = await harness.open()
    await expect(other.run([ref])).rejects.toMatchObject({
      code: 'invalid_input',
      message: `Session ${other.id} has no blob ${ref.hash}. Send the file itself.`,
    })
    await expect(other.send([{ type: 'message', input: [ref] }])).rejects.toMatchObject({ code: 'invalid_input' })
    await expect(harness.run([ref])).rejects.toMatchObject({ code: 'invalid_input' })
    // Naming the hash in a text changes nothing.
    await other.run(`Read blob:${ref.hash}`)
    expect(seen[0]).toMatch(/^This session has no original/)
    expect(await other.blob(ref)).toBeNull()
  })

  it('B-INPUT-8: the session itself and its forks read it, by each of these', async () => {
    const { owner, seen } = await play()
    const fork = await owner.fork()
    for (const session of [owner, fork]) {
      expect(await session.run([{ type: 'text', text: 'Look.' }, ref])).toMatchObject({ status: 'completed' })
      await session.run('Read it.')
      expect(Buffer.from((await session.blob(ref))?.data ?? [])).toEqual(secret)
    }
    expect(seen).toEqual([secret.toString(), secret.toString()])
  })

  it('B-INPUT-9: a blob part without a media type, with an odd one, or with more in it is refused', async () => {
    const { owner } = await play()
    const { media: _media, ...bare } = ref
    const odd = [bare, { ...ref, media: 'a\nb' }, { ...ref, bytes: -1 }, { ...ref, more: 1 }, { ...ref, hash: 7 }]
    for (const part of odd)
      await expect(owner.send([part] as unknown as Input)).rejects.toMatchObject({
        code: expect.stringMatching(/^invalid_/) as string,
      })
  })
})
