// The differential oracle: every recorded stream, read by us and by the AI SDK's provider packages, says the same. Where it
// does not, oracle-differences.ts has the reason.
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, it } from 'vitest'
import { callHost } from '../../src/models/http/exchange.ts'
import { parseEvents } from '../../src/models/http/framing.ts'
import { checkCut } from '../fuzz/streams-cut.ts'
import { taken } from '../fuzz/streams-walk.ts'
import { acceptedDifferences, type Difference } from './oracle-differences.ts'
import { ourReading, protocols, type Said } from './oracle-said.ts'
import { sdkReading } from './oracle-sdk.ts'
import { committedStreams, type Recording, sharedStreams } from './oracle-streams.ts'

const FIELDS = ['parts', 'calls', 'finish', 'usage'] as const
const PROTOCOLS = ['messages', 'responses', 'chat'] as const

type Found = Required<Omit<Difference, 'reason'>>

function differencesOf(recording: string, ours: Said, theirs: Said): readonly Found[] {
  return FIELDS.filter((field) => !isDeepStrictEqual(ours[field], theirs[field])).map((field) => ({
    recording,
    field,
    readings: { ours: ours[field], theirs: theirs[field] },
  }))
}

async function found(streams: readonly Recording[]): Promise<readonly Found[]> {
  const each = streams.map(async (stream) => differencesOf(stream.name, ourReading(stream), await sdkReading(stream)))
  return (await Promise.all(each)).flat()
}

/** The lists must be the same, both ways: nothing unlisted occurs, and nothing listed is gone. */
function expectAccepted(differences: readonly Found[], accepted: readonly Difference[]): void {
  const pinned = new Set(accepted.filter(({ readings }) => readings).map(placeOf))
  const occurring = differences.map(({ readings, ...rest }) =>
    pinned.has(placeOf(rest)) ? { ...rest, readings } : rest,
  )
  const listed = accepted.map(({ reason: _reason, ...rest }) => rest)
  expect(inOrder(occurring)).toEqual(inOrder(listed))
}

function placeOf({ recording, field }: Pick<Difference, 'recording' | 'field'>): string {
  return `${recording} ${field}`
}

function inOrder<T extends Pick<Difference, 'recording' | 'field'>>(differences: readonly T[]): readonly T[] {
  return differences.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))
}

function tell(what: string, streams: readonly Recording[], differences: readonly Found[]): void {
  const counts = PROTOCOLS.map((name) => `${name} ${streams.filter(({ protocol }) => protocol === name).length}`)
  const equal = streams.length - new Set(differences.map(({ recording }) => recording)).size
  console.info(
    `oracle, ${what}: ${streams.length} streams (${counts.join(', ')}), ${equal} equal, ${differences.length} accepted differences`,
  )
}

const isShared = ({ recording }: Difference): boolean => recording.startsWith('shared/')

describe('the differential oracle', () => {
  it('B-ORACLE-1: every committed stream says the same to us and to the AI SDK, but for what is listed', async () => {
    const differences = await found(committedStreams)
    expectAccepted(
      differences,
      acceptedDifferences.filter((each) => !isShared(each)),
    )
    tell('committed', committedStreams, differences)
  })

  it.skipIf(sharedStreams.length === 0)(
    'B-ORACLE-1: so does every stream of ../shared/recordings (skipped where that folder is not there)',
    async () => {
      const differences = await found(sharedStreams)
      expectAccepted(differences, acceptedDifferences.filter(isShared))
      tell('shared', sharedStreams, differences)
    },
  )

  it('B-ORACLE-2: there are enough streams of each protocol, and each says where its format is published', () => {
    expect(committedStreams.length).toBeGreaterThanOrEqual(40)
    for (const protocol of PROTOCOLS) {
      const ours = committedStreams.filter((stream) => stream.protocol === protocol)
      expect(ours.length).toBeGreaterThanOrEqual(10)
      for (const { bytes } of ours) expect(Buffer.from(bytes).toString()).toMatch(/^: source: https:\/\/\S+/)
    }
  })

  it('B-ORACLE-3: a changed text, seal, call, finish or usage is a difference, and so is a missing one', () => {
    const said: Said = {
      parts: [{ type: 'reasoning', text: 'a', sealed: 'b' }],
      calls: [{ id: 'c', tool: 'd', args: { e: 1 }, sealed: null }],
      finish: 'calls',
      usage: null,
    }
    const changed: readonly Said[] = [
      { ...said, parts: [{ type: 'reasoning', text: 'a', sealed: 'B' }] },
      { ...said, calls: [{ id: 'c', tool: 'd', args: { e: '1' }, sealed: null }] },
      { ...said, finish: 'stop' },
      { ...said, usage: { inputTokens: 0, outputTokens: 0, cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } },
    ]
    expect(differencesOf('x', said, said)).toEqual([])
    const fields = changed.map((other) => differencesOf('x', said, other).map(({ field }) => field))
    expect(fields).toEqual(FIELDS.map((field) => [field]))
    const [difference] = differencesOf('x', said, { ...said, finish: 'stop' })
    expect(() => expectAccepted(difference ? [difference] : [], [])).toThrow()
    expect(() => expectAccepted([], [{ recording: 'x', field: 'finish', reason: 'It was so once.' }])).toThrow()
  })

  it('B-ORACLE-4: cut at any byte a committed stream is a failure or the whole reply, and split there the same', () => {
    let cuts = 0
    for (const recording of committedStreams) {
      const stream = taken({ frame: parseEvents, protocols, exchange: callHost }, recording)
      for (let offset = 0; offset < recording.bytes.length; offset++, cuts++) checkCut(stream, offset)
    }
    expect(cuts).toBeGreaterThan(50_000)
  })

  it('B-ORACLE-3: every accepted difference has its reason, and one place', () => {
    expect(acceptedDifferences.map(({ reason }) => reason).filter((reason) => !/^\S.*\.$/.test(reason))).toEqual([])
    expect(new Set(acceptedDifferences.map(placeOf)).size).toBe(acceptedDifferences.length)
  })
})
