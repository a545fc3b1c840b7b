// Secrets: what is known never reaches the log, a blob, the stream or the model. Looked for in the bytes on disk.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  Harness,
  type Model,
  type Reply,
  type Script,
  scripted,
  sqlite,
  type CompleteStore,
  type Tool,
} from '../../src/index.ts'
import { environmentSecrets, Redactor } from '../../src/runtime/redact/redactor.ts'
import { runs } from '../runs.ts'

const SECRET = 'sk-live-4f9a8b7c6d5e'
const MARK = '⟦secret:API_KEY⟧'
const secrets = { API_KEY: SECRET }

let folder = ''
let store: CompleteStore
const open: Harness[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'terret-secret-'))
  store = sqlite(join(folder, 'terret.db'))
})
afterEach(async () => {
  for (const harness of open.splice(0)) await harness.close()
  await store.close()
  rmSync(folder, { recursive: true, force: true })
})

function make(script: Script | Model, tools: readonly Tool[] = []): Harness {
  const model = typeof script === 'object' && 'call' in script ? script : scripted(script)
  const harness = new Harness({ model, tools, store, secrets })
  open.push(harness)
  return harness
}

function onDisk(): string {
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), 'latin1'))
    .join('')
}

function leak(value: unknown, name = 'leak'): Tool {
  const execute = () => {
    if (value instanceof Error) throw value
    return value
  }
  return defineTool({
    name,
    description: name,
    input: z.object({ text: z.string().optional() }),
    effect: 'read',
    execute,
  })
}

describe('what is written', () => {
  it('B-SECRET-1: a secret in a message, a result, its metadata, an error, a kept text or a reply is a mark on disk and for the model', async () => {
    const seen: string[] = []
    const keeping = defineTool({
      name: 'keeping',
      description: 'keeps',
      input: z.object({}),
      effect: 'read',
      execute: (_, context) => context.keep(`${'x'.repeat(9)}${SECRET}`),
    })
    const long = leak(`${SECRET} `.repeat(10_000), 'long')
    const harness = make(
      (request, n) => {
        seen.push(JSON.stringify(request))
        const tools = ['leak', 'failing', 'keeping', 'long']
        return n === 0 ? { text: `I use ${SECRET}`, calls: tools.map((tool) => ({ tool })) } : `done with ${SECRET}`
      },
      [leak({ key: SECRET }), leak(new Error(`denied for ${SECRET}`), 'failing'), keeping, long],
    )
    const result = await harness.run(`my key is ${SECRET}`)
    expect(result).toMatchObject({ status: 'completed', text: `done with ${MARK}` })
    expect(seen).toHaveLength(2)
    for (const text of [...seen, JSON.stringify(result), onDisk()]) expect(text).not.toContain(SECRET)
    expect(seen[0]).toContain(`my key is ${MARK}`)
    await harness.close()
    expect(onDisk()).not.toContain(SECRET)
  })

  it('B-SECRET-2: it is known in JSON, in an address, in hexadecimal of either case and in base64, whatever stands around it', () => {
    const value = 'p@ss "word"/1+2'
    const redactor = new Redactor({ PASSWORD: value })
    const hex = Buffer.from(value).toString('hex')
    const spellings = [
      value,
      JSON.stringify({ value }),
      encodeURIComponent(value),
      encodeURI(value),
      hex,
      hex.toUpperCase(),
    ]
    for (const before of ['', 'u', 'us', 'user:'])
      for (const after of ['', ':x', 'yz']) {
        spellings.push(Buffer.from(before + value + after).toString('base64'))
        spellings.push(Buffer.from(before + value + after).toString('base64url'))
      }
    for (const text of spellings) expect(redactor.text(`a ${text} b`)).toContain('⟦secret:PASSWORD⟧')
    expect(redactor.text('p@ss word')).toBe('p@ss word')
  })

  it('B-SECRET-1: nothing of a long secret is left where a refusal shows the beginning of a field', async () => {
    const long = `sk-${'A1b2C3d4'.repeat(16)}`
    const tool = defineTool({
      name: 'post',
      description: 'posts',
      input: z.object({ body: z.string() }),
      execute: () => '',
    })
    const model = scripted([{ calls: [{ tool: 'post', args: { boddy: long } }] }, 'stopped'])
    const harness = new Harness({ model, tools: [tool], secrets: { KEY: long } })
    const { sessionId } = await harness.run('go')
    const log = JSON.stringify((await harness.session(sessionId).events()).events)
    expect(log).toContain('boddy (string')
    expect(log).not.toContain('A1b2C3d4')
    await harness.close()
  })

  it('B-SECRET-3: a call whose arguments hold a secret is not run, and the history shows the mark', async () => {
    let ran = 0
    const tool = defineTool({
      name: 'post',
      description: 'posts',
      input: z.object({ body: z.object({ lines: z.array(z.string()) }) }),
      execute: () => (ran += 1),
    })
    const args = { body: { lines: ['a', `key=${SECRET}`] } }
    const harness = make([{ calls: [{ tool: 'post', args }] }, 'stopped'], [tool])
    const { sessionId } = await harness.run('go')
    expect(ran).toBe(0)
    const { events } = await harness.session(sessionId).events()
    expect(JSON.stringify(events)).toContain(MARK)
    expect(JSON.stringify(events)).not.toContain(SECRET)
    expect(onDisk()).not.toContain(SECRET)
  })

  it('B-SECRET-4: signed reasoning that holds a secret loses its signature; other reasoning keeps every byte', async () => {
    const opaque = { signature: 'abc', data: 'def' }
    const parts = [
      { type: 'reasoning', text: `the key ${SECRET}`, opaque },
      { type: 'reasoning', text: 'plain', opaque: { signature: SECRET } },
      { type: 'reasoning', text: 'untouched', opaque },
      { type: 'text', text: 'done' },
    ] as const
    const reply: Reply = { type: 'reply', parts, calls: [], finish: 'stop', usage: null }
    const harness = make({ name: 'signing', call: () => Promise.resolve(reply) })
    const { sessionId } = await harness.run('go')
    const { events } = await harness.session(sessionId).events()
    const message = events.find((event) => event.type === 'agent.message')
    expect(message).toMatchObject({
      parts: [
        { type: 'reasoning', text: `the key ${MARK}` },
        { type: 'reasoning', text: 'plain' },
        { type: 'reasoning', text: 'untouched', opaque },
        { type: 'text', text: 'done' },
      ],
    })
    expect(JSON.stringify(message)).toBe(JSON.stringify(message).replaceAll(SECRET, ''))
  })
})

describe('what is shown and used', () => {
  it('B-SECRET-5: a secret that comes in pieces never appears in the stream, and nothing else is lost', async () => {
    const deltas = `the key is ${SECRET}, and sk-live is no key`.split('')
    const harness = make([{ deltas }])
    let said = ''
    for await (const event of harness.stream('go', { deltas: true })) if (event.type === 'delta') said += event.text
    expect(said).toBe(`the key is ${MARK}, and sk-live is no key`)
  })

  it('B-SECRET-5: of a secret that begins with another one, nothing is left in the stream', async () => {
    const model = scripted([{ deltas: ['key abcdefgh', 'ijkl done, and abcdefgh'] }])
    const harness = new Harness({ model, secrets: { A: 'abcdefgh', B: 'abcdefghijkl' } })
    onTestFinished(() => harness.close())
    const stream = harness.stream('go', { deltas: true })
    let said = ''
    for await (const event of stream) if (event.type === 'delta') said += event.text
    expect(said).toBe('key ⟦secret:B⟧ done, and ⟦secret:A⟧')
    expect(said).toBe((await stream.result).text)
  })

  it('B-SECRET-6: however a text is cut into pieces, the stream gives what the whole gives', () => {
    const redactor = new Redactor({
      A: 'abcabcabd',
      B: 'bcabcabdd-and-more',
      C: 'abcabcabdc-and',
      D: 'abcabcabdc-and-more',
    })
    const words = ['a', 'b', 'c', 'd', '-and', '-more', 'abcabcabd', 'bcabcabdd-and-more', 'abcabcabdc-and-more']
    const text = fc.array(fc.constantFrom(...words))
    fc.assert(
      fc.property(text, fc.array(fc.nat(5)), (words, cuts) => {
        const whole = words.join('')
        const stream = redactor.stream()
        let out = ''
        let at = 0
        for (const cut of cuts) {
          out += stream.push(whole.slice(at, at + cut))
          at += cut
        }
        out += stream.push(whole.slice(at)) + stream.end()
        expect(out).toBe(redactor.text(whole))
      }),
      { numRuns: runs(2_000) },
    )
  })

  it('B-SECRET-7: a tool that declares a secret gets it by name and in the place of its mark; another does not', async () => {
    const got: string[] = []
    const using = (name: string, declared: readonly string[]): Tool =>
      defineTool({
        name,
        description: name,
        input: z.object({ url: z.string() }),
        effect: 'read',
        secrets: declared,
        execute: ({ url }, context) => {
          got.push(context.reveal(url))
          got.push(context.secret('API_KEY'))
          return 'used'
        },
      })
    const args = { url: `https://example.org/?key=${MARK}` }
    const harness = make(
      [
        {
          calls: [
            { tool: 'with', args },
            { tool: 'without', args },
          ],
        },
        'done',
      ],
      [using('with', ['API_KEY']), using('without', [])],
    )
    await harness.run('go')
    expect(got).toEqual([`https://example.org/?key=${SECRET}`, SECRET, args.url])
    expect(onDisk()).not.toContain(SECRET)
  })

  it('B-SECRET-8: the environment names its secrets; values too short and bad names are refused with a sentence', () => {
    const env = {
      OPENAI_API_KEY: 'sk-123456789012',
      PATH: '/usr/bin:/bin:/sbin',
      GITHUB_TOKEN: 'short',
      'A.TOKEN': 'x'.repeat(20),
      PWD: '/home/somebody/work',
      TOKEN_FILE: '/run/secrets/token',
      AWS_ACCESS_KEY_ID: 'AKIA1234567890',
      KEYBOARD: 'a long layout name',
      MONKEY: 'a long animal name',
      TOKENIZERS_PARALLELISM: 'disabled',
      MAX_OUTPUT_TOKENS: '10000012345',
      SECRET_NAMES: 'first,second',
      MONKEYS: 'several animal names',
    }
    const named = {
      OPENAI_API_KEY: 'sk-123456789012',
      PGPASSWORD: 's3cr3tpass1',
      STRIPE_KEY: 'sk_live_12345',
      ENCRYPTION_KEY: 'enc-12345678',
      SECRET_KEY_BASE: 'base-12345678',
      GITHUB_PAT: 'ghp_12345678',
      DB_PWD: 'pwd-12345678',
      npm_token: 'npm_12345678',
      SECRETS: 'all of them 123',
      DB_PASSWORDS: 'pw-12345678',
      GITHUB_PATS: 'ghp_abcdefgh',
      API_KEYS: '{"one": "sk-1234567", "two": "sk-2345678"}',
      APIKEYS_OLD: '["sk-3456789"]',
      MAX_API_KEY: 'max-12345678',
    }
    expect(environmentSecrets({ ...env, ...named })).toEqual(named)
    const several = { HF_TOKENS: 'hf_aaaa1111, hf_bbbb2222;short', SSH_KEYS: '["k-1234567","k-7654321"]' }
    expect(environmentSecrets(several)).toEqual({
      ...several,
      HF_TOKENS_PART_1: 'hf_aaaa1111',
      HF_TOKENS_PART_2: 'hf_bbbb2222',
      SSH_KEYS_PART_1: 'k-1234567',
      SSH_KEYS_PART_2: 'k-7654321',
    })
    expect(() => new Redactor({ PIN: '1234' })).toThrow('shorter than 8 characters')
    expect(() => new Redactor({ 'a b': 'x'.repeat(20) })).toThrow('no name for a secret')
  })

  it('B-SECRET-14: a secret that is a word of the log is redacted in texts and changes nothing of the log itself', async () => {
    const words = [
      'continue',
      'completed',
      'model.started',
      'agent.message',
      'metadata',
      'run.settled',
      'tool_calls',
      'leak_tool',
    ]
    const all = Object.fromEntries(words.map((word, i) => [`WORD_${i}`, word]))
    const said = words.join(' and ')
    const model = scripted([{ calls: [{ tool: 'leak_tool' }] }, `I say ${said}`])
    const harness = new Harness({
      model,
      tools: [leak(said, 'leak_tool')],
      store,
      secrets: all,
    })
    open.push(harness)
    const session = await harness.open()
    const result = await session.run('go')
    expect(result.status).toBe('completed')
    expect(result.text).toBe(`I say ${words.map((_, i) => `⟦secret:WORD_${i}⟧`).join(' and ')}`)
    const types = (await session.events()).events.map(({ type }) => type)
    expect(types).toEqual([
      'session.created',
      'user.message',
      'run.started',
      'model.started',
      'agent.message',
      'agent.tool_result',
      'model.started',
      'agent.message',
      'run.settled',
    ])
  })
})
