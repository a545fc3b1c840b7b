// What answers at the address of a server may be another program, a proxy or a server of another version. Each odd answer is refused
// with a code by the client and by the commands with --server, and none is called a bug.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect, ServerRefusal } from '../../src/client/index.ts'
import { exitForError, EXIT } from '../../src/cli/exit.ts'
import { useServer } from '../../src/cli/server-flag.ts'
import { openRemoteStore } from '../../src/cli/remote/remote-store.ts'
import { Fault, Harness, model } from '../../src/index.ts'

type Odd = (response: ServerResponse) => void
const json =
  (body: unknown, status = 200): Odd =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }

const ODD: Readonly<Record<string, Odd>> = {
  'a page of HTML': (r) =>
    void r.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>Hi</title>'),
  'HTML as a refusal': (r) => void r.writeHead(404, { 'content-type': 'text/html' }).end('<h1>404</h1>'),
  nothing: (r) => void r.writeHead(204).end(),
  'an empty body': (r) => void r.writeHead(200).end(),
  'JSON that is cut': (r) => void r.writeHead(200, { 'content-type': 'application/json' }).end('{"sessions": [{"ses'),
  'fewer bytes than it promised': (r) => {
    r.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
    r.write('{"sessions":')
    setTimeout(() => r.destroy(), 5)
  },
  null: json(null),
  'a number': json(5),
  'a text': json('yes'),
  'a list': json([]),
  'an empty object': json({}),
  'fields of other types': json({
    sessions: 'many',
    pending: {},
    events: null,
    card: 5,
    session: 5,
    agents: 1,
    removed: {},
    ok: 'yes',
    result: 5,
    open: 'x',
    name: 5,
    now: 'noon',
    store: null,
    head: 'x',
    undone: 1,
    messages: {},
    eventId: 5,
    seq: 'x',
    duplicate: 0,
    queued: null,
  }),
  'rows of other types': json({
    sessions: [null],
    pending: [5],
    events: [{}],
    messages: [null],
    removed: ['x'],
    agents: [[]],
    next: null,
    now: 1,
    store: 's',
  }),
  'a refusal of another kind': json({ error: 'no' }, 400),
  'a refusal with odd codes': json({ error: { code: { a: 1 }, message: 5 } }, 409),
  'a refusal that is no object': json(null, 500),
  'a redirect': (r) => void r.writeHead(302, { location: '/elsewhere' }).end(),
}

async function fake(odd: Odd): Promise<string> {
  const server = createServer((_, response) => odd(response))
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const VERBS: Readonly<Record<string, (client: Client) => Promise<unknown>>> = {
  open: (client) => client.open(),
  list: async (client) => (await client.list({ order: 'id', limit: 500 })).cards.map(({ session }) => session),
  pending: async (client) => (await client.pending()).map(({ callId }) => callId),
  me: async (client) => (await client.server.me()).name.length,
  look: async (client) => (await client.server.session('s')).card.session.length,
  read: (client) => client.session('s').events(),
  send: (client) => client.session('s').send('Hi.'),
  decide: (client) => client.session('s').decide({ callId: '5.0', allow: true, digest: 'x' }),
  messages: async (client) => (await client.session('s').messages()).map(({ role }) => role),
  remove: async (client) => (await client.remove('s')).map(({ session }) => session),
  undo: async (client) => (await client.session('s').undo()).length,
  pin: (client) => client.session('s').pin('Only UTC.'),
  pins: async (client) => (await client.session('s').status({ include: ['pins'] })).pins.map(({ seq }) => seq),
  follow: (client) => client.session('s').follow().next(),
  watch: (client) => client.watch().next(),
}

describe.each(Object.keys(ODD))('a server that answers %s', (name) => {
  it('B-REFUSE-7: is refused by every verb of the client with a code, and by a command with one sentence that calls it no bug', async () => {
    const url = await fake(ODD[name] as Odd)
    const client = connect({ url, token: 't' })
    await Promise.all(
      Object.entries(VERBS).map(async ([verb, ask]) => {
        // What is only away for a moment is asked again for ever by those that follow.
        if ((verb === 'follow' || verb === 'watch') && /cut|fewer|redirect|500|no object/.test(name)) return
        const error = await ask(client).then(
          () => null,
          (thrown: unknown) => thrown,
        )
        expect([verb, error instanceof ServerRefusal || error instanceof Fault]).toEqual([verb, true])
        expect((error as ServerRefusal).code).toMatch(/^[a-z_]+$/)
        expect(exitForError(error, true).text).not.toMatch(/bug|undefined|\[object/)
      }),
    )
    await useServer({ url, tokenFile: undefined }, 'list')
    onTestFinished(() => useServer(null))
    process.env['TERRET_TOKEN'] = 't'
    const far = await openRemoteStore({ url, tokenFile: undefined }).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(exitForError(far, true)).toMatchObject({ text: expect.not.stringContaining('bug') as string })
  }, 30_000)
})

describe('odd answers elsewhere', () => {
  it('B-REFUSE-7: a command against a server says that the answer cannot be used, whatever else went wrong with it', () => {
    expect(exitForError(new TypeError('x is not a function'), true)).toEqual({
      exit: EXIT.config,
      text: 'The answer of the server cannot be used (x is not a function). Is it of this version?',
    })
    expect(exitForError(new TypeError('x is not a function')).text).toContain('bug of terret')
  })

  it.each(['openai', 'anthropic'] as const)(
    'B-REFUSE-8: an odd answer of a provider of the kind %s ends the run as the failure of a model, with its class',
    async (provider) => {
      for (const odd of Object.values(ODD)) {
        const baseUrl = await fake(odd)
        const harness = new Harness({
          model: model(`${provider}:m`, { baseUrl, key: 'k' }),
          limits: { modelAttempts: 1 },
        })
        onTestFinished(() => harness.close())
        const result = await harness.run('Hi.')
        expect(result.status).toMatch(/failed|sleeping/)
        if (result.status === 'failed') expect(result.failure.message).not.toMatch(/invariant|undefined|bug/)
      }
    },
    60_000,
  )
})
