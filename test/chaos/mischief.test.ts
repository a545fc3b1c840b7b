// How answers go wrong: on the wire, in the stream, and in what they claim. Seen from a real client over a real socket.
import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { type Chaos, type Dialect, type ChaosDamage, startChaos } from '../../src/testing/index.ts'
import type { Clock } from '../../src/index.ts'
import { chaosFor, DIALECTS, json, PATHS, post, received, split, streamOf } from './wire.ts'

const say = (chaos: ChaosDamage = {}) => ({ text: 'Hällo 🌍, all of you.', calls: [{ tool: 'look', args: {} }], chaos })

/** Time passes at once. */
const instant: Clock = {
  now: () => 0,
  timer(_ms, fire) {
    const handle = setImmediate(fire)
    return () => clearImmediate(handle)
  },
}

/** Time passes when the test says so. */
function byHand(): { readonly clock: Clock; readonly waiting: Map<() => void, number> } {
  const waiting = new Map<() => void, number>()
  const clock: Clock = {
    now: () => 0,
    timer(ms, fire) {
      waiting.set(fire, ms)
      return () => void waiting.delete(fire)
    },
  }
  return { clock, waiting }
}

async function bytesOf(
  dialect: Dialect,
  chaos: ChaosDamage,
): Promise<{ readonly bytes: Buffer; readonly broken: boolean }> {
  const server = await chaosFor([say(chaos)], { clock: instant })
  return received(await post(server, dialect, { stream: true }))
}

/** All that the server wrote, head and chunks as they stood on the wire. */
async function raw(chaos: Chaos, dialect: Dialect): Promise<string> {
  const socket = connect(Number(new URL(chaos.url).port), '127.0.0.1')
  const body = JSON.stringify({ stream: true })
  const head = [`POST ${PATHS[dialect]} HTTP/1.1`, 'host: chaos', 'connection: close', `content-length: ${body.length}`]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  await once(socket, 'close')
  return Buffer.concat(chunks).toString('latin1')
}

describe('on the wire', () => {
  it.each(DIALECTS)('B-CHAOS-7: %s is cut after exactly so many bytes', async (dialect) => {
    const { bytes } = await bytesOf(dialect, {})
    for (const cutAfterBytes of [1, 77, bytes.length]) {
      const cut = await bytesOf(dialect, { cutAfterBytes })
      expect([cut.broken, cut.bytes.equals(bytes.subarray(0, cutAfterBytes))]).toEqual([true, true])
    }
    await expect(bytesOf(dialect, { cutAfterBytes: 0 })).rejects.toThrow()
  })

  it('B-CHAOS-7: a stall holds what is left until its time is over', async () => {
    const whole = await bytesOf('messages', {})
    const { clock, waiting } = byHand()
    const chaos = await chaosFor([say({ stallAfterBytes: 40, stallMs: 7_000 })], { clock })
    const response = await post(chaos, 'messages', { stream: true })
    const reader = response.body?.getReader()
    let text = Buffer.alloc(0)
    while (text.length < 40) text = Buffer.concat([text, (await reader?.read())?.value ?? Buffer.alloc(0)])
    expect(text.equals(whole.bytes.subarray(0, 40))).toBe(true)
    await expect.poll(() => [...waiting.values()]).toEqual([7_000])
    for (const fire of waiting.keys()) fire()
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      text = Buffer.concat([text, next.value])
    }
    expect(text.equals(whole.bytes)).toBe(true)
  })

  it('B-CHAOS-7: a stall after no byte gives not even the head, and ends when the client goes away', async () => {
    const chaos = await chaosFor([say({ stallAfterBytes: 0 }), 'next'])
    const stop = new AbortController()
    const answer = post(chaos, 'chat', { stream: true }, { signal: stop.signal })
    await expect.poll(() => chaos.requests.length).toBe(1)
    stop.abort()
    await expect(answer).rejects.toMatchObject({ name: 'AbortError' })
    expect(await (await post(chaos, 'chat')).text()).toContain('next')
  })

  it.each([{ dripMs: 5 }, { splitBytes: 3 }] as const)(
    'B-CHAOS-8: %o gives the same bytes, in small writes',
    async (way) => {
      const whole = await bytesOf('responses', {})
      expect((await bytesOf('responses', way)).bytes.equals(whole.bytes)).toBe(true)
      const text = await raw(await chaosFor([say(way)], { clock: instant }), 'chat')
      const sizes = [...text.matchAll(/\r\n([0-9a-f]+)\r\n/g)].map(([, size]) => Number.parseInt(size ?? '', 16))
      expect(sizes.length).toBeGreaterThan(100)
      expect(Math.max(...sizes)).toBe('dripMs' in way ? 1 : 3)
    },
  )

  it('B-CHAOS-8: one byte is flipped and no other', async () => {
    const { bytes } = await bytesOf('chat', {})
    const spoilt = await bytesOf('chat', { corruptAt: 60, splitBytes: 7 })
    const wrong = [...bytes.keys()].filter((at) => bytes[at] !== spoilt.bytes[at])
    expect([wrong, spoilt.bytes.length]).toEqual([[60], bytes.length])
  })

  it('B-CHAOS-8: a compressed answer says so and is the same', async () => {
    const { bytes } = await bytesOf('messages', {})
    const chaos = await chaosFor([say({ gzip: true })])
    const response = await post(chaos, 'messages', { stream: true })
    expect(response.headers.get('content-encoding')).toBe('gzip')
    expect((await received(response)).bytes.equals(bytes)).toBe(true)
  })
})

describe('in the stream', () => {
  it.each(DIALECTS)('B-CHAOS-9: junk in %s leaves the events of the answer as they are', async (dialect) => {
    const clean = await streamOf(await chaosFor([say()]), dialect)
    const text = await (await post(await chaosFor([say({ junk: true })]), dialect, { stream: true })).text()
    const junked = split(text).map(({ data }) => data)
    expect(text).toMatch(/^: /m)
    expect(junked.length).toBeGreaterThan(clean.length)
    const known = new Set(clean.map(({ data }) => data))
    expect([...new Set(junked.filter((data) => known.has(data)))]).toEqual([...known])
  })

  it.each([
    ['messages', '"type":"overloaded_error"', 'message_stop'],
    ['responses', '"type":"error"', 'response.completed'],
    ['chat', '{"error":{', '[DONE]'],
  ] as const)(
    'B-CHAOS-9: %s reports an error after some events, or ends without its end',
    async (dialect, error, end) => {
      const chaos = await chaosFor([say({ errorAfter: 3 }), say({ noEnd: true }), say()])
      const failed = await streamOf(chaos, dialect)
      expect(failed).toHaveLength(4)
      expect(failed[3]?.data).toContain(error)
      const texts = [await streamOf(chaos, dialect), await streamOf(chaos, dialect)].map((events) =>
        JSON.stringify(events),
      )
      expect(texts.map((text) => text.includes(end))).toEqual([false, true])
    },
  )

  it('B-CHAOS-9: a line can be as long as it likes', async () => {
    const chaos = await chaosFor([say({ hugeLine: 300_000 })])
    const text = await (await post(chaos, 'responses', { stream: true })).text()
    const lines = text.split('\n').filter((line) => line.length > 300_000)
    expect(lines).toHaveLength(1)
    expect(JSON.parse(lines[0]?.slice('data: '.length) ?? '')).toMatchObject({ type: 'response.chaos.unknown' })
  })

  it.each(DIALECTS)('B-CHAOS-10: %s can stay alive and say nothing, or never stop', async (dialect) => {
    const chaos = await chaosFor([say({ pingsOnly: true }), say({ endless: true })], { clock: instant })
    for (const bytesMin of [3_000, 300_000]) {
      const response = await post(chaos, dialect, { stream: true })
      let bytes = 0
      let text = ''
      for await (const chunk of response.body ?? []) {
        bytes += (chunk as Uint8Array).length
        if (text.length < 3_000) text += Buffer.from(chunk as Uint8Array).toString()
        if (bytes > bytesMin) break
      }
      expect(bytes).toBeGreaterThan(bytesMin)
      expect(text.includes('Hällo')).toBe(bytesMin > 3_000)
    }
  })
})

describe('in what it claims', () => {
  it.each(DIALECTS)('B-CHAOS-12: %s says no usage, nonsense, or the same three times', async (dialect) => {
    const options = { stream_options: { include_usage: true } }
    const chaos = await chaosFor([
      say({ wrongUsage: 'missing' }),
      say({ wrongUsage: 'absurd' }),
      { ...say({ wrongUsage: 'triple' }), usage: { inputTokens: 4_711, outputTokens: 1 } },
    ])
    const ask = async () => (await streamOf(chaos, dialect, options)).map(({ data }) => data).join('\n')
    expect(await ask()).not.toMatch(/"(output|completion)_tokens":\d/)
    expect(await ask()).toContain('1e+21')
    const told = (await ask()).match(/"(input|prompt)_tokens":4711/g)
    // Messages tells of its input once more, when it begins.
    expect(told).toHaveLength(dialect === 'messages' ? 4 : 3)
  })

  it.each(DIALECTS)(
    'B-CHAOS-12: %s gives calls the same id or none, and arguments that do not parse',
    async (dialect) => {
      const calls = [{ tool: 'a' }, { tool: 'b', rawArgs: '{"cut' }]
      const chaos = await chaosFor([
        { calls, chaos: { duplicateIds: true } },
        { calls, chaos: { blankIds: true } },
        { text: 'all', chaos: { finish: 'calls' } },
        { text: 'all', chaos: { finish: 'exploded' } },
      ])
      const ask = async () => JSON.stringify(await json(await post(chaos, dialect)))
      const name = dialect === 'responses' ? 'call_id' : 'id'
      const prefix = dialect === 'messages' ? 'toolu' : 'call'
      const same = await ask()
      expect(same.split(`"${name}":"${prefix}_chaos_0_0"`)).toHaveLength(3)
      expect(same).toContain(String.raw`{\"cut`)
      expect((await ask()).split(`"${name}":""`)).toHaveLength(3)
      if (dialect === 'responses') await ask()
      else expect(await ask()).toContain(dialect === 'chat' ? '"tool_calls"' : '"tool_use"')
      expect(await ask()).toContain('"exploded"')
    },
  )
})

describe('the server', () => {
  it('B-CHAOS-13: closes every connection, also one that is idle, stalled or being filled', async () => {
    const chaos = await startChaos({ script: [say({ stallAfterBytes: 9 }), say({ endless: true }), 'x'] })
    const port = Number(new URL(chaos.url).port)
    const idle = connect(port, '127.0.0.1')
    await once(idle, 'connect')
    const idleClosed = once(idle, 'close')
    const stalled = await post(chaos, 'chat', { stream: true })
    const filled = await post(chaos, 'messages', { stream: true })
    await chaos.close()
    await idleClosed
    expect([(await received(stalled)).broken, (await received(filled)).broken]).toEqual([true, true])
    const next = await chaosFor(['again'], { port })
    expect(await (await post(next, 'chat')).text()).toContain('again')
  })

  it('B-CHAOS-13: a port that is taken is a fault that says so', async () => {
    const chaos = await chaosFor(['x'])
    const port = Number(new URL(chaos.url).port)
    await expect(startChaos({ script: [], port })).rejects.toMatchObject({ name: 'Fault', code: 'invalid_config' })
  })

  it('B-CHAOS-4: keeps what it was asked, in order, and no key', async () => {
    const chaos = await chaosFor(['a', 'b'], { clock: { ...instant, now: () => 17 } })
    await post(chaos, 'messages', { model: 'm' }, { headers: { 'x-api-key': 'sk-1', 'x-more': 'y' } })
    await post(chaos, 'chat', {}, { headers: { authorization: 'Bearer sk-2' } })
    expect(JSON.stringify(chaos.requests)).not.toMatch(/sk-[12]/)
    expect(chaos.requests).toMatchObject([
      { dialect: 'messages', path: '/v1/messages', body: { model: 'm' }, at: 17, headers: { 'x-more': 'y' } },
      { dialect: 'chat', path: '/v1/chat/completions', headers: { authorization: expect.any(String) as string } },
    ])
  })

  it('B-CHAOS-5: answers by a list or by a function, the same bytes every time, and refuses when the script fails', async () => {
    const asked: string[] = []
    const script = (request: { readonly path: string }, n: number) => {
      asked.push(`${request.path} ${n}`)
      return say()
    }
    const servers = [await chaosFor(script), await chaosFor([say()])]
    const texts = []
    for (const chaos of servers) texts.push(await (await post(chaos, 'responses', { stream: true })).text())
    expect(texts[0]).toBe(texts[1])
    expect(asked).toEqual(['/v1/responses 0'])
    const more = await post(servers[1] as Chaos, 'responses')
    expect(more.status).toBe(400)
    expect(await more.text()).toContain('was asked for one more')
    const thrown = await post(
      await chaosFor(() => {
        throw new Error('no idea')
      }),
      'chat',
    )
    expect([thrown.status, (await thrown.text()).includes('no idea')]).toEqual([400, true])
  })
})
