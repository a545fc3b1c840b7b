// terret/restate without a Restate server: what it refuses at start, which requests it answers, and what its relay sends.
// With a real server and real kills: restate.long.test.ts.
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { connect } from 'node:http2'
import { type AddressInfo, connect as connectPlain, createServer as createPlain } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Harness, memory, scripted, type CompleteStore } from '../../src/index.ts'
import { restate, type RestateOptions } from '../../src/restate/index.ts'
import { whySdkUnusable } from '../../src/restate/sdk.ts'
import { createWaker } from '../../src/restate/wake-session.ts'
import { compareIds } from '../../src/stores/plan/store-ids.ts'
import { makeOldSession } from '../old-session.ts'
import { until } from '../until.ts'

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** A public key as Restate writes it. */
function written(key: KeyObject): string {
  const raw = Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url')
  let rest = BigInt(`0x${raw.toString('hex')}`)
  let text = ''
  for (; rest > 0n; rest /= 58n) text = (BASE58[Number(rest % 58n)] ?? '') + text
  for (const byte of raw) {
    if (byte !== 0) break
    text = `1${text}`
  }
  return `publickeyv1_${text}`
}

const pair = generateKeyPairSync('ed25519')
const KEY = written(pair.publicKey)

/** What Restate signs its requests with. */
function signed(key: KeyObject, aud: string, about: object = {}): Readonly<Record<string, string>> {
  const now = Math.floor(Date.now() / 1_000)
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const head = part({ typ: 'JWT', alg: 'EdDSA', kid: KEY })
  const text = `${head}.${part({ aud, iat: now, nbf: now - 60, exp: now + 60, ...about })}`
  return {
    'x-restate-signature-scheme': 'v1',
    'x-restate-jwt-v1': `${text}.${sign(null, Buffer.from(text), key).toString('base64url')}`,
  }
}

function stage(): { readonly store: CompleteStore; readonly harness: Harness; readonly options: RestateOptions } {
  const store = memory()
  const harness = new Harness({ model: scripted(() => 'done'), store, secrets: {} })
  onTestFinished(async () => {
    await harness.close()
    await store.close()
  })
  return { store, harness, options: { harness, store, identityKeys: [KEY], port: 0, relay: false } }
}

describe('at start', () => {
  it.each([
    [
      { identityKeys: undefined },
      'The option "identityKeys" of restate is missing. Start Restate with a request identity key',
    ],
    [{ identityKeys: [] }, 'The option "identityKeys" of restate must name at least one key'],
    [{ identityKeys: ['secret'] }, 'has an item 0 that must be a public key as Restate logs it'],
    [{ identityKey: [KEY] }, 'Unknown option "identityKey" of restate: did you mean "identityKeys"?'],
    [
      { ingress: 'http://me:secret@host' },
      'The option "ingress" of restate must be an address such as http://127.0.0.1:8080',
    ],
    [{ ingress: 'localhost:8080' }, 'The option "ingress" of restate must be an address'],
    [{ name: 'a/b' }, 'The option "name" of restate must begin with a letter'],
    [{ port: 70_000 }, 'The option "port" of restate must be a whole number from 0 to 65535'],
    [{ abortMs: 0 }, 'The option "abortMs" of restate must be a number of milliseconds above 0'],
    [{ harness: {} }, 'The option "harness" of restate cannot be an object: give new Harness({ … })'],
    [{ store: 'terret.db' }, 'The option "store" of restate cannot be "terret.db": give the store of the harness'],
  ])('B-RESTATE-16: options that cannot be used are refused with one sentence: %j', async (wrong, sentence) => {
    const { options } = stage()
    const refused = restate({ ...options, ...wrong } as RestateOptions)
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining(sentence) as string,
    })
    await refused.catch((error: Error) => expect(error.message).not.toContain('secret@'))
  })

  it('B-RESTATE-16: a harness that may not drive, one that works by itself, and a port that is taken are refused', async () => {
    const { store, harness, options } = stage()
    const idle = new Harness({ model: scripted(() => 'done'), store, worker: { drives: false } })
    await expect(restate({ ...options, harness: idle })).rejects.toMatchObject({ code: 'invalid_config' })
    await idle.close()
    const taken = createPlain()
    const port = await new Promise<number>((resolve) =>
      taken.listen(0, '127.0.0.1', () => resolve((taken.address() as AddressInfo).port)),
    )
    await expect(restate({ ...options, port })).rejects.toMatchObject({
      code: 'invalid_config',
      message: `Cannot listen on 127.0.0.1, port ${port}. Choose another.`,
    })
    taken.close()
    const working = harness.work()
    await expect(restate(options)).rejects.toThrow('This worker looks for due sessions already.')
    await harness.close()
    await working
  })

  it.each([
    ['1.12.0', false, null],
    ['1.14.5', false, null],
    [
      '1.15.1',
      false,
      'it needs Promise.withResolvers, which this Node lacks. Run: npm install @restatedev/restate-sdk@1.14',
    ],
    [
      '1.17.2',
      false,
      'it needs Promise.withResolvers, which this Node lacks. Run: npm install @restatedev/restate-sdk@1.14',
    ],
    ['1.17.2', true, null],
    ['1.11.1', true, 'it is not supported. Run: npm install @restatedev/restate-sdk@1'],
    ['1.9.0', false, 'it is not supported. Run: npm install @restatedev/restate-sdk@1.14'],
    ['0.8.1', true, 'it is not supported. Run: npm install @restatedev/restate-sdk@1'],
    ['2.0.0', true, 'it is not supported. Run: npm install @restatedev/restate-sdk@1'],
    ['undefined', true, 'it is not supported. Run: npm install @restatedev/restate-sdk@1'],
  ])(
    'B-RESTATE-7: version %s of the SDK, on a Node with Promise.withResolvers (%s), is used or refused',
    (version, has, why) => {
      expect(whySdkUnusable(version, has)).toBe(
        why === null ? null : `terret/restate cannot use @restatedev/restate-sdk ${version}: ${why}`,
      )
    },
  )

  it('B-RESTATE-7: without the SDK, and with one that hangs on this Node, it says what to install and does not listen', () => {
    const folder = mkdtempSync(join(tmpdir(), 'terret-restate-sdk-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const built = fileURLToPath(new URL('../../.build/src', import.meta.url))
    cpSync(built, join(folder, 'src'), { recursive: true })
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
    const start = join(folder, 'start.js')
    writeFileSync(
      start,
      `import { restate } from './src/restate/index.js'
      const nothing = () => {}
      const harness = { health: nothing, work: nothing }
      const store = { open: nothing, due: () => [], card: nothing, watchDue: () => nothing, nextDue: () => null }
      const options = { harness, store, identityKeys: ['${KEY}'], port: 0, relay: false }
      const said = await restate(options).then((worker) => worker.close().then(() => 'up'), (error) => error.message)
      console.log(said)`,
    )
    const say = (): string => execFileSync(process.execPath, [start], { encoding: 'utf8' }).trim()
    const range = 'withResolvers' in Promise ? '1' : '1.14'
    expect(say()).toBe(`terret/restate needs a package of its own. Run: npm install @restatedev/restate-sdk@${range}`)
    const modules = join(folder, 'node_modules', '@restatedev')
    mkdirSync(modules, { recursive: true })
    symlinkSync(
      fileURLToPath(new URL('../../node_modules/restate-sdk-newest', import.meta.url)),
      join(modules, 'restate-sdk'),
    )
    expect(say()).toBe(
      'withResolvers' in Promise
        ? 'up'
        : 'terret/restate cannot use @restatedev/restate-sdk 1.17.2: it needs Promise.withResolvers, which this Node lacks. Run: npm install @restatedev/restate-sdk@1.14',
    )
  })
})

describe('requests', () => {
  it('B-RESTATE-9: what is not signed, or signed by another key, is refused with 401, and nothing is driven', async () => {
    const { store, harness, options } = stage()
    const told: string[] = []
    const worker = await restate({
      ...options,
      onError: (where, error) => void told.push(`${where}: ${String(error)}`),
    })
    const session = await harness.open({ id: 'one' })
    const before = await store.card(session.id)
    const client = connect(worker.url)
    const status = (path: string, headers: Readonly<Record<string, string>>): Promise<number> =>
      new Promise((resolve, reject) => {
        const asked = client.request({
          ':path': path,
          ':method': 'POST',
          'content-type': 'application/vnd.restate.invocation.v5',
          ...headers,
        })
        asked.on('response', (answer) => resolve(answer[':status'] ?? 0))
        asked.on('error', reject)
        asked.resume()
        asked.end()
      })
    const other = generateKeyPairSync('ed25519').privateKey
    for (const path of ['/discover', '/invoke/session/wake']) {
      expect(await status(path, {})).toBe(401)
      expect(await status(path, { 'x-restate-signature-scheme': 'unsigned' })).toBe(401)
      expect(await status(path, signed(other, path))).toBe(401)
      expect(await status(path, signed(pair.privateKey, path, { exp: 1 }))).toBe(401)
      expect(await status(path, signed(pair.privateKey, '/invoke/session/other'))).toBe(401)
    }
    expect(told.some((line) => line.includes('its clock and the clock of this machine differ'))).toBe(true)
    // The same requests, signed as they should be, are answered.
    const accept = 'application/vnd.restate.endpointmanifest.v4+json'
    expect(await status('/discover', { ...signed(pair.privateKey, '/discover'), accept })).toBe(200)
    expect(await status('/invoke/session/wake', signed(pair.privateKey, '/invoke/session/wake'))).toBe(200)
    expect(await store.card(session.id)).toEqual(before)
    client.destroy()
    // Bytes that are no HTTP/2 end their own connection and nothing else.
    const { hostname, port } = new URL(worker.url)
    const raw = connectPlain(Number(port), hostname, () => raw.end('GET / HTTP/1.1\r\n\r\n'))
    await new Promise((resolve) => raw.on('error', resolve).on('close', resolve).resume())
    const again = connect(worker.url)
    await new Promise((resolve, reject) => again.once('connect', resolve).once('error', reject))
    again.destroy()
    await worker.close()
  })
})

describe('a wake', () => {
  it('B-RESTATE-21: of sessions that lost their worker one is driven at a time, and one that is sent something does not wait', async () => {
    const store = memory()
    let release = (): void => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    let asked = (): void => {}
    const asking = new Promise<void>((resolve) => {
      asked = resolve
    })
    const model = scripted(async ({ messages }) => {
      if (!JSON.stringify(messages).includes('wait')) return 'done'
      asked()
      await released
      return 'done'
    })
    const harness = new Harness({ model, store, secrets: {} })
    const idle = new Harness({ model, store, worker: { drives: false } })
    for (const [id, text] of [
      ['a', 'wait'],
      ['b', 'hello'],
    ] as const) {
      await (await idle.open({ id })).send(text)
      await store.claim(id, 'dead', 1)
    }
    await until(async () => expect((await store.due(5)).sessions.toSorted(compareIds)).toEqual(['a', 'b']))
    const wake = createWaker(store, harness)
    const first = wake('a', 0)
    await asking
    expect(await wake('b', 4)).toEqual({ after: { key: 'again-5', delayMs: 1_000 } })
    expect(await wake('b', 5)).toEqual({ after: { key: 'again-6', delayMs: 1_000 } })
    await idle.session('b').send('more')
    expect(await wake('b', 6)).toEqual({ after: null })
    expect(await store.card('b')).toMatchObject({ outcome: 'completed', due: null })
    release()
    expect(await first).toEqual({ after: null })
    await Promise.all([harness.close(), idle.close()])
    await store.close()
  })

  it('B-RESTATE-22: an attempt that throws is put off by the backoff of its session, and left alone when that is quarantined', async () => {
    const inner = memory()
    const store = new Proxy(inner, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name)
        if (name === 'read') return () => Promise.reject(new Error('the log cannot be read'))
        return typeof member === 'function' ? (member.bind(target) as unknown) : member
      },
    })
    const harness = new Harness({ model: scripted(() => 'done'), store, secrets: {}, worker: { attemptsMax: 1 } })
    const twice = new Harness({ model: scripted(() => 'done'), store, secrets: {}, worker: { attemptsMax: 2 } })
    const idle = new Harness({ model: scripted([]), store: inner, worker: { drives: false } })
    await (await idle.open({ id: 'bad' })).send('hello')
    const { after } = await createWaker(store, twice)('bad', 0)
    const due = (await inner.card('bad'))?.due ?? 0
    expect(due).toBeGreaterThan(inner.now())
    expect(after).toMatchObject({ key: `due-${due}-1` })
    // A wake that comes before its time does not try it: it is the same wake, a little later.
    expect((await createWaker(store, twice)('bad', 1)).after).toMatchObject({ key: `due-${due}-2` })
    await idle.session('bad').send('more')
    expect(await createWaker(store, harness)('bad', 0)).toEqual({ after: null })
    expect((await inner.card('bad'))?.trouble).toMatchObject({ until: null })
    await Promise.all([harness.close(), twice.close(), idle.close()])
    await inner.close()
  })
})

describe('the relay', () => {
  type Heard = { readonly path: string; readonly key: string }

  /** Takes wakes as Restate does. `status` is what it answers. */
  async function ingress(answer: {
    status: number
  }): Promise<{ readonly url: string; readonly heard: Heard[]; readonly close: () => void }> {
    const heard: Heard[] = []
    const server = createServer((request: IncomingMessage, response) => {
      heard.push({ path: request.url ?? '', key: String(request.headers['idempotency-key']) })
      request.resume()
      response.writeHead(answer.status).end()
    })
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)),
    )
    const close = (): void => {
      server.closeAllConnections()
      server.close()
    }
    onTestFinished(close)
    return { url: `http://127.0.0.1:${port}`, heard, close }
  }

  it('B-RESTATE-18: each session that is due is sent to Restate, under one key, again while it stays due, and no other', async () => {
    const { store, harness, options } = stage()
    const { url, heard } = await ingress({ status: 202 })
    const idle = new Harness({ model: scripted(() => 'done'), store, worker: { drives: false } })
    await makeOldSession(store, 'a/b', { text: 'hello' })
    await idle.open({ id: 'quiet' })
    const worker = await restate({ ...options, relay: true, ingress: `${url}/base/` })
    await until(() => expect(heard.length).toBeGreaterThanOrEqual(2))
    expect(new Set(heard.map(({ path, key }) => `${path} ${key}`))).toEqual(
      new Set(['/base/session/a%2Fb/wake/send relay']),
    )
    await (await idle.open({ id: 'later' })).send('hello')
    await until(() => expect(heard.map(({ path }) => path)).toContain('/base/session/later/wake/send'))
    // Driven, they are due no more.
    await harness.work({ session: 'a/b' })
    await harness.work({ session: 'later' })
    await worker.close()
    await idle.close()
  })

  it('B-RESTATE-18: a Restate that refuses, does not know the object or is away is reported once, and asked again', async () => {
    const { store, options } = stage()
    const answer = { status: 404 }
    const { url, heard, close } = await ingress(answer)
    const idle = new Harness({ model: scripted(() => 'done'), store, worker: { drives: false } })
    for (const id of ['a', 'b', 'c']) await (await idle.open({ id })).send('hello')
    const told: string[] = []
    const onError = (where: string, error: unknown): void => {
      told.push(`${where}: ${(error as Error).message}`)
    }
    const worker = await restate({ ...options, relay: true, ingress: url, onError })
    const sent = async (id: string): Promise<void> => {
      await (await idle.open({ id })).send('hello')
      await until(() => expect(heard.map(({ path }) => path)).toContain(`/session/${id}/wake/send`))
    }
    await until(() => expect(heard.length).toBeGreaterThanOrEqual(3))
    await sent('d')
    expect(told).toEqual(['relay: Restate does not know "session". Register this worker\'s address with it.'])
    answer.status = 202
    await sent('e')
    answer.status = 503
    await sent('f')
    await until(() => expect(told[1]).toBe('relay: Restate refused a wake with status 503.'))
    await until(() => expect(heard.filter(({ path }) => path.includes('/a/')).length).toBeGreaterThan(1))
    close()
    await worker.close()
    await idle.close()
    expect(told).toHaveLength(2)
  })

  it('B-RESTATE-18: closing does not wait for a Restate that does not answer', async () => {
    const { store, options } = stage()
    let left = false
    const silent = createServer((request) => {
      request.socket.on('close', () => {
        left = true
      })
    })
    const port = await new Promise<number>((resolve) =>
      silent.listen(0, '127.0.0.1', () => resolve((silent.address() as AddressInfo).port)),
    )
    const asked = new Promise((resolve) => silent.once('request', resolve))
    const idle = new Harness({ model: scripted(() => 'done'), store, worker: { drives: false } })
    await (await idle.open({ id: 'a' })).send('hello')
    const told: string[] = []
    const onError = (where: string): void => void told.push(where)
    const worker = await restate({ ...options, relay: true, ingress: `http://127.0.0.1:${port}`, onError })
    await asked
    await worker.close()
    await until(() => expect(left).toBe(true))
    expect(told).toEqual([])
    await idle.close()
    silent.close()
  })
})
