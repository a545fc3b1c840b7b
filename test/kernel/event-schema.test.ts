// Events are declared once, as types. The schema that checks files is generated from them and must agree with them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it } from 'vitest'
import { DECLARED, eventSchema } from '../../scripts/event-schema.ts'
import { SCHEMAS } from '../../src/archive/event-schema.ts'
import { checkPortable } from '../../src/archive/schema-check.ts'
import type { Json } from '../../src/kernel/content.ts'
import { Fault } from '../../src/kernel/failure.ts'

type Place = readonly (string | number)[]

/** Written short in the golden logs. */
const HASHES = new Set(['toolset', 'instructions', 'policy', 'digest', 'place', 'same', 'hash'])
const root = join(import.meta.dirname, '..', '..')
const golden = join(root, 'test', 'golden')
const events = readdirSync(golden)
  .filter((name) => name.endsWith('.jsonl'))
  .flatMap((name) => readFileSync(join(golden, name), 'utf8').trim().split('\n'))
  .map((line) => JSON.parse(line, (key, value: Json) => (HASHES.has(key) ? 'b'.repeat(64) : value)) as Json)

/** What every field is replaced by: something of each kind, and what is just outside of a kind. */
const OTHERS: readonly Json[] = [
  null,
  true,
  false,
  -1,
  0,
  1.5,
  2 ** 53,
  9e15,
  '',
  'x',
  '1.0',
  'a'.repeat(64),
  [],
  [1],
  {},
]

describe('the schema of events', () => {
  it('B-PORT-27: is made of their types, and is not out of date (npm run events)', () => {
    const made = eventSchema(DECLARED.map((path) => readFileSync(join(root, path), 'utf8')))
    expect(readFileSync(join(root, 'src/archive/event-schema.ts'), 'utf8')).toBe(made)
  })

  it('repeats every term of a call in its review, and everything that a run freezes in its own', () => {
    const envelope = ['seq', 'at', 'wall', 'epoch', 'type']
    const fields = (name: string, without: readonly string[]): unknown => {
      const { properties, required = [] } = SCHEMAS[name] ?? {}
      const all = Object.entries(properties ?? {}).filter(([key]) => !without.includes(key))
      return { all: Object.fromEntries(all), required: required.filter((key) => !without.includes(key)) }
    }
    expect(fields('call.reviewed', [...envelope, 'call', 'edit'])).toEqual(
      fields('Proposal', ['id', 'tool', 'args', 'raw', 'text']),
    )
    const opening = ['inputs', 'wakes', 'model', 'plan', 'since', 'now', 'foreign', 'traceparent']
    expect(fields('run.reviewed', envelope)).toEqual(fields('run.started', [...envelope, ...opening]))
  })

  it('B-PORT-27: is JSON Schema: another checker says of every event, and of every change of one, what the import says', () => {
    const ajv = new Ajv2020({ strict: true, strictRequired: false })
    const valid = ajv.compile({ $defs: SCHEMAS, $ref: '#/$defs/Portable' })
    const seen = { good: 0, bad: 0 }
    const disputed: string[] = []
    const kinds = new Map(events.map((event) => [JSON.stringify(placesIn(event)), event]))
    for (const event of kinds.values()) {
      expect({ event, refusal: refusalOf(fileWith(event)) }).toEqual({ event, refusal: '' })
      expect(refusalOf(fileWith(changed(event, ['surplus'], 1)))).toContain('records[0].event.surplus is not known.')
      for (const file of changesOf(event).map(fileWith)) {
        const refusal = refusalOf(file)
        if (valid(file) !== (refusal === '')) disputed.push(`${JSON.stringify(file)} ${refusal}`)
        seen[refusal === '' ? 'good' : 'bad'] += 1
      }
    }
    expect(disputed).toEqual([])
    expect(seen.good).toBeGreaterThan(500)
    expect(seen.bad).toBeGreaterThan(4_000)
  })

  it('has every kind of type that the log is written in, and stops at any other', () => {
    const made = (type: string) => eventSchema([`type Portable = ${type}\ntype Frozen<T> = T`])
    expect(made("Frozen<{ a?: 'x' | 'y'; b: readonly (string | null)[] } & { c: true }>")).toContain(
      '{"type":"object","properties":{"a":{"enum":["x","y"]},"b":{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"null"}]}},"c":{"const":true}},"required":["b","c"],"additionalProperties":false}',
    )
    for (const type of ['{ a: bigint }', '{ a: () => void }', '{ a: Missing }', '{ a(): void }', '{ a: string[][0] }'])
      expect(() => made(type)).toThrow()
  })
})

function fileWith(event: Json): Json {
  return [{ type: 'event', event }]
}

function refusalOf(file: Json): string {
  try {
    checkPortable(file)
    return ''
  } catch (error) {
    if (error instanceof Fault) return error.message
    throw error
  }
}

/** With every field left out, and with every field of another kind. */
function changesOf(event: Json): readonly Json[] {
  return placesIn(event).flatMap((place) => [undefined, ...OTHERS].map((other) => changed(event, place, other)))
}

/** Every field and item of a value, at any depth. */
function placesIn(value: Json): readonly Place[] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => {
    const step = Array.isArray(value) ? Number(key) : key
    return [[step], ...placesIn(inner).map((place) => [step, ...place])]
  })
}

/** With another value there, or with none. */
function changed(value: Json, [step, ...rest]: Place, other: Json | undefined): Json {
  if (step === undefined) return other ?? null
  const copy = (Array.isArray(value) ? [...(value as readonly Json[])] : { ...(value as object) }) as Record<
    string,
    Json
  >
  if (rest.length === 0 && other === undefined) delete copy[step]
  else copy[step] = changed(copy[step] ?? null, rest, other)
  return JSON.parse(JSON.stringify(copy)) as Json
}
