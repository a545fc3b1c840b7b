// When cron lines fire: clock changes in several zones, and lines and zones that are refused.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkApart, nextTimes, readSchedule } from '../../src/cron/cron-line.ts'
import { findZone } from '../../src/cron/zoned-time.ts'

const DAY = 24 * 60 * 60_000
const iso = (at: number) => new Date(at).toISOString().replace(':00.000Z', 'Z')
/** All times of a line in a day of the zone, in UTC. */
const during = (line: string, zone: string, from: string, to: string): readonly string[] => {
  const [begin, end] = [Date.parse(from) - 1, Date.parse(to)]
  const { next } = readSchedule(line, zone)
  const times: string[] = []
  for (let at = next(begin); at !== null && at < end; at = next(at)) times.push(iso(at))
  return times
}

/** The days of clock changes, from midnight to midnight. */
const OSLO_SPRING = ['Europe/Oslo', '2027-03-27T23:00Z', '2027-03-28T22:00Z'] as const
const OSLO_AUTUMN = ['Europe/Oslo', '2026-10-24T22:00Z', '2026-10-25T23:00Z'] as const
const NEW_YORK_SPRING = ['America/New_York', '2027-03-14T05:00Z', '2027-03-15T04:00Z'] as const
const NEW_YORK_AUTUMN = ['America/New_York', '2026-11-01T04:00Z', '2026-11-02T05:00Z'] as const
/** Half an hour: 02:00 becomes 02:30 in October, and 02:00 becomes 01:30 in April. */
const LORD_HOWE_SPRING = ['Australia/Lord_Howe', '2026-10-03T13:30Z', '2026-10-04T13:00Z'] as const
const LORD_HOWE_AUTUMN = ['Australia/Lord_Howe', '2027-04-03T13:00Z', '2027-04-04T13:30Z'] as const

describe('clock changes', () => {
  it('B-CRON-1: a time in the gap of a clock change fires once, in the first minute after the gap', () => {
    for (const line of ['30 2 * * *', '10,20,40 2 * * *', '*/20 2 * * *']) {
      expect(during(line, ...OSLO_SPRING)).toEqual(['2027-03-28T01:00Z'])
      expect(during(line, ...NEW_YORK_SPRING)).toEqual(['2027-03-14T07:00Z'])
    }
    expect(during('15 2 * * *', ...LORD_HOWE_SPRING)).toEqual(['2026-10-03T15:30Z'])
    expect(during('30 1-3 * * *', ...OSLO_SPRING)).toEqual([
      '2027-03-28T00:30Z',
      '2027-03-28T01:00Z',
      '2027-03-28T01:30Z',
    ])
  })

  it('B-CRON-2: a time that the clock shows twice fires at the first of the two', () => {
    expect(during('30 2 * * *', ...OSLO_AUTUMN)).toEqual(['2026-10-25T00:30Z'])
    expect(during('30 1 * * *', ...NEW_YORK_AUTUMN)).toEqual(['2026-11-01T05:30Z'])
    expect(during('*/20 2 * * *', ...OSLO_AUTUMN)).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:20Z',
      '2026-10-25T00:40Z',
    ])
    expect(during('0,30 2 * * *', ...OSLO_AUTUMN)).toEqual(['2026-10-25T00:00Z', '2026-10-25T00:30Z'])
    expect(during('30 1-3 * * *', ...OSLO_AUTUMN)).toEqual([
      '2026-10-24T23:30Z',
      '2026-10-25T00:30Z',
      '2026-10-25T02:30Z',
    ])
    expect(during('30 */2 * * *', ...OSLO_AUTUMN)).toHaveLength(12)
    expect(during('45 1 * * *', ...LORD_HOWE_AUTUMN)).toEqual(['2027-04-03T14:45Z'])
    // Asked inside the second pass, the next one is tomorrow's.
    const second = Date.parse('2026-10-25T01:10Z')
    expect(iso(readSchedule('30 2 * * *', 'Europe/Oslo').next(second) ?? 0)).toBe('2026-10-26T01:30Z')
  })

  it('B-CRON-3: a line with "*" for its hour fires by elapsed time, also when the clock changes', () => {
    for (const [place, hours] of [
      [OSLO_SPRING, 23],
      [OSLO_AUTUMN, 25],
      [NEW_YORK_SPRING, 23],
      [NEW_YORK_AUTUMN, 25],
    ] as const) {
      for (const [line, each] of [
        ['0 * * * *', 1],
        ['*/30 * * * *', 2],
        ['30 * * * *', 1],
        ['*/5 * * * *', 12],
      ] as const) {
        const [zone, from, to] = place
        const times = during(line, zone, from, to).map((at) => Date.parse(at))
        expect(times).toHaveLength(hours * each)
        expect(new Set(times.map((at, i) => at - (times[i - 1] ?? at - (60 / each) * 60_000)))).toEqual(
          new Set([(60 / each) * 60_000]),
        )
      }
    }
    expect(during('*/30 * * * *', ...LORD_HOWE_SPRING)).toHaveLength(47)
    expect(during('*/30 * * * *', ...LORD_HOWE_AUTUMN)).toHaveLength(49)
  })

  it('B-CRON-4: a daily line fires once on each day of its zone, in seven zones over three years', () => {
    const ZONES = [
      'Europe/Oslo',
      'America/New_York',
      'Australia/Lord_Howe',
      'Africa/Casablanca',
      'America/Santiago',
      'Asia/Kathmandu',
      'Pacific/Apia',
    ]
    const START = Date.UTC(2026, 0, 1)
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.integer({ min: 0, max: 23 }),
        fc.integer({ min: 0, max: 59 }),
        (name, hour, minute) => {
          const zone = findZone(name)
          const times = nextTimes(readSchedule(`${minute} ${hour} * * *`, name), START, 3 * 365)
          const days = times.map((at) => Math.floor(zone.wallAt(at) / DAY))
          expect(days).toEqual(days.map((_, i) => (days[0] ?? 0) + i))
        },
      ),
      { numRuns: 9, examples: ZONES.map((name) => [name, 2, 30]) },
    )
  })

  it('B-CRON-5: times come in order, each after the one before, whatever the line and the moment', () => {
    const line = fc.constantFrom('*/7 * * * *', '5,50 */3 * * *', '0 2 * * 0', '30 1-3 * * *', '59 23 L * *')
    const zone = fc.constantFrom('Europe/Oslo', 'America/New_York', 'Australia/Lord_Howe', 'UTC')
    const from = fc.integer({ min: Date.UTC(2026, 0, 1), max: Date.UTC(2029, 0, 1) })
    fc.assert(
      fc.property(line, zone, from, (text, name, at) => {
        const schedule = readSchedule(text, name)
        const times = nextTimes(schedule, at, 30)
        expect(times.every((time, i) => time > (times[i - 1] ?? at) && time % 60_000 === 0)).toBe(true)
        // The answer does not depend on the moment of the question.
        expect(schedule.next((times[3] ?? 0) - 1)).toBe(times[3])
      }),
      { numRuns: 30 },
    )
  })
})

describe('what is refused', () => {
  it('B-CRON-6: a line that is no cron line of five fields, or never fires, is refused with one sentence and what to do', () => {
    const refused = [
      ['* * 31 2 *', 'never fires'],
      ['60 * * * *', 'cannot be read: Invalid value for minute: 60'],
      ['0 24 * * *', 'cannot be read'],
      ['@reboot', 'is a name'],
      ['@daily', 'is a name'],
      ['2026-11-20T03:00:00', 'is no cron line'],
      ['2026-11-20 03:00', 'is no cron line'],
      ['59/2 * * * *', 'cannot be read'],
      ['0 0 3 * * *', 'has 6 fields'],
      ['? 3 * * *', 'cannot be read at "?"'],
      ['', 'is no cron line'],
      ['0 3 * * \u202E*', 'cannot be read at'],
      [`${'1,'.repeat(500)}1 * * * *`, 'is longer than'],
      ['*/0 * * * *', 'cannot be read'],
    ] as const
    for (const [line, why] of refused) {
      expect(() => readSchedule(line, 'UTC')).toThrow(expect.objectContaining({ code: 'invalid_input' }))
      expect(() => readSchedule(line, 'UTC')).toThrow(why)
    }
  })

  it('B-CRON-7: a zone that is not known by name is refused before the line is read', () => {
    for (const zone of ['Mars/Base', '+02:00', '', 'Europe/Oslo\u0000'])
      expect(() => readSchedule('0 3 * * *', zone)).toThrow('There is no time zone')
  })

  it('B-CRON-8: a line with times less than five minutes apart is refused, and both times are named', () => {
    expect(() => checkApart('*/4 * * * *')).toThrow('at 00:00 and at 00:04')
    expect(() => checkApart('0,3 9 * * *')).toThrow('at 09:00 and at 09:03')
    expect(() => checkApart('58,1 0,23 * * *')).toThrow('at 23:58 and at 00:01')
    expect(() => checkApart('1-51/5,58 0,2,4,6,8,10,12,14,16,18,20,23 1,31 * *')).toThrow('at 23:58 and at 00:01')
    for (const line of ['*/5 * * * *', '0 3 * * *', '2,58 0 * * *', '0 3 29 2 *']) checkApart(line)
  })
})
