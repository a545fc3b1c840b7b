// What a compaction leaves of a conversation, as the transcript shows it: cuts, pins, cleared results, forks.
import { describe, expect, it } from 'vitest'
import { Harness, memory, scripted } from '../../src/index.ts'
import type { Event } from '../../src/kernel/event.ts'
import { type Message, CLEARED, Transcript } from '../../src/kernel/transcript.ts'
import { ownerWrite } from '../../src/runtime/commit/owner-write.ts'
import { SessionCache } from '../../src/runtime/state/session-cache.ts'
import { readTranscript, sizeOfMessage } from '../../src/view/session-history.ts'
import { asking, call, type Logbook } from '../kernel/logbook.ts'

type Compacted = Omit<Extract<Event, { type: 'context.compacted' }>, 'seq' | 'at' | 'epoch' | 'type'>

function contentOf({ content }: Extract<Message, { role: 'tool' }>): string {
  return typeof content === 'string' ? content : `[${content.bytes} bytes]`
}

function seen(log: Logbook): Transcript {
  const transcript = new Transcript()
  for (const event of log.events) transcript.take(event)
  return transcript
}

function textOf(message: Message): string {
  if (message.role === 'tool') return `result ${message.call}: ${contentOf(message)}`
  const text = message.parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return message.role === 'assistant' ? `reply ${message.seq}` : text
}

/** A user's words, and so many turns of one call each. The seqs of the replies. */
function turns(log: Logbook, count: number): readonly number[] {
  return Array.from({ length: count }, () => {
    const reply = log.reply([call('look')])
    log.settle()
    log.result(`${reply}.0`, 'x'.repeat(100))
    log.settle()
    return reply
  })
}

describe('a compaction in the view', () => {
  it('B-COMPACT-1: a cut goes by the place in the conversation: what was said early and shown late stays', () => {
    const log = asking()
    const early = log.say('shown late', 'after')
    const [, second = 0] = turns(log, 2)
    const transcript = seen(log)
    transcript.take({ seq: log.session.seq + 1, at: 0, epoch: 1, type: 'model.started', shows: [early] })
    transcript.take({
      seq: log.session.seq + 2,
      at: 0,
      epoch: 1,
      type: 'context.compacted',
      cut: second,
      summary: 'so far',
    })
    expect(transcript.messages.map(textOf)).toEqual([
      '<conversation-summary>\nso far\n</conversation-summary>',
      `reply ${second}`,
      `result ${second}.0: ${'x'.repeat(100)}`,
      'shown late',
    ])
  })

  it('B-COMPACT-2: what is pinned stands before the summary, word for word and in order, until it is pinned no more', () => {
    const log = asking()
    const first = seen(log).messages[0]?.seq ?? 0
    const parts = [{ type: 'text', text: 'never touch prod' }] as const
    const rule = log.inbox({ type: 'user.message', id: 'rule', parts, when: 'next', pin: true })
    const [, second = 0, third = 0] = turns(log, 3)
    const transcript = seen(log)
    let { seq } = log.session
    const compact = (what: Compacted): readonly string[] => {
      transcript.take({ seq: ++seq, at: 0, epoch: 1, type: 'context.compacted', ...what })
      return transcript.messages.map(textOf)
    }
    const said = textOf(transcript.messages[0] as Message)
    compact({ pins: [first, rule] })
    expect(compact({ cut: second, summary: 'one' }).slice(0, 4)).toEqual([
      said,
      'never touch prod',
      '<conversation-summary>\none\n</conversation-summary>',
      `reply ${second}`,
    ])
    compact({ pins: [rule] })
    expect(compact({ cut: third, summary: 'two' }).slice(0, 3)).toEqual([
      'never touch prod',
      '<conversation-summary>\ntwo\n</conversation-summary>',
      `reply ${third}`,
    ])
  })

  it('B-COMPACT-24: a cleared result names its call, and one from before a fork how many forks ago that was', () => {
    const log = asking()
    turns(log, 1)
    const source = seen(log)
    const fork = asking()
    const [reply = 0] = turns(fork, 1)
    const transcript = seen(fork)
    for (const message of source.messages) transcript.inherited.set(message, 2)
    transcript.messages.unshift(...source.messages)
    const { seq } = fork.session
    transcript.take({ seq: seq + 1, at: 0, epoch: 1, type: 'context.compacted', cleared: seq })
    const results = transcript.messages.flatMap((m) => (m.role === 'tool' ? [contentOf(m)] : []))
    expect(results).toEqual([`${CLEARED} call:^^${reply}.0`, `${CLEARED} call:${reply}.0`])
  })

  it('B-COMPACT-3: in a fork all that was inherited is older than any cut, but for its pins, and the source stays as it is (A11)', async () => {
    const store = memory()
    const harness = new Harness({ model: scripted(() => 'yes'), store })
    const source = await harness.open({ id: 'source' })
    for (let i = 0; i < 20; i++) await source.send(`old ${i}`, i === 3 ? { pin: true } : {})
    await source.run('last')
    const before = await source.messages()
    const fork = await source.fork({ id: 'fork' })
    await fork.run('first of its own')
    const own = (await fork.events()).events.find(({ type }) => type === 'model.started')?.seq ?? 0
    const { events } = await fork.events()
    const seq = events.at(-1)?.seq ?? 0
    const { transcript } = await readTranscript(store, { id: 'fork', upTo: seq })
    transcript.take({ seq: seq + 1, at: 0, epoch: 1, type: 'context.compacted', cut: own, summary: 'so far' })
    expect(transcript.messages.map(textOf)).toEqual([
      'old 3',
      '<conversation-summary>\nso far\n</conversation-summary>',
      'first of its own',
      expect.stringMatching(/^reply/) as string,
    ])
    expect(await source.messages()).toEqual(before)
    await harness.close()
  })

  it('B-COMPACT-4: what a model must read is counted anew after a compaction, in memory and from the log', async () => {
    const store = memory()
    const harness = new Harness({ model: scripted(() => 'y'.repeat(1_000)), store })
    const session = await harness.open({ id: 's' })
    for (let i = 0; i < 4; i++) await session.run('x'.repeat(1_000))
    await harness.close()
    const cache = new SessionCache('s', store)
    await cache.open()
    await cache.count()
    expect(cache.chars).toBe(8_000)
    const cut = (await cache.transcript()).messages.at(-1)?.seq ?? 0
    const { epoch = 0 } = (await store.claim('s', 'test', 1_000)) ?? {}
    const event = { type: 'context.compacted', cut, summary: 'short' } as const
    await store.commit([ownerWrite('s', cache.session, [event], { now: store.now(), epoch })])
    await cache.catchUp()
    const left = (await cache.transcript()).messages.reduce((sum, message) => sum + sizeOfMessage(message), 0)
    expect(left).toBeLessThan(1_200)
    expect(cache.chars).toBe(left)
    const { seq } = cache.session
    expect((await readTranscript(store, { id: 's', upTo: seq, count: true })).chars).toBe(left)
  })
})
