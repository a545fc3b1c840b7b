// Row 48: names that are not mere names in JavaScript, in arguments, rows and rules.
import { z } from 'zod'
import { defineTool, parsePolicy, type Tool } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { raw, type World } from './world.ts'

type Bag = { [key: string]: unknown }

/** Merges as libraries did: whatever the key is called. */
function merge(into: Bag, from: unknown): Bag {
  for (const [key, value] of Object.entries((from ?? {}) as Bag)) {
    if (value !== null && typeof value === 'object' && typeof into[key] === 'object') merge(into[key] as Bag, value)
    else if (value !== null && typeof value === 'object' && key === 'constructor') merge(into[key] as Bag, value)
    else if (value !== null && typeof value === 'object' && key === 'prototype') merge(into[key] as Bag, value)
    else into[key] = value
  }
  return into
}

/** A name that only this world could have put on every object. */
const stain = (world: World): string => `stain${world.mark}`

function stained(world: World): boolean {
  return stain(world) in {}
}

function clean(world: World): void {
  delete (Object.prototype as Bag)[stain(world)]
}

function taking(world: World): Tool {
  return defineTool({
    name: 'take',
    description: 'take',
    input: z.looseObject({ options: z.looseObject({}).optional(), list: z.array(z.string()).optional() }),
    // In the control the arguments are brought into shape by a merge with defaults.
    ...(world.defended ? {} : { normalise: (args: Json) => merge({ options: {} }, opened(args)) as Json }),
    execute: (args) => args,
  })
}

/** Texts that hold JSON are read too: models write arguments twice. */
function opened(value: Json): Json {
  if (typeof value === 'string' && value.startsWith('{')) return JSON.parse(value) as Json
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  const entries = Object.entries(value as { readonly [key: string]: Json })
  return Object.fromEntries(entries.map(([key, item]) => [key, opened(item)]))
}

function argument(name: string, text: (key: string) => string): Case {
  return {
    name,
    attack: async (world) => {
      world.defer(() => clean(world))
      await world.call([taking(world)], 'take', raw(text(stain(world))))
    },
    harmed: stained,
  }
}

/** The same against the tools that come with the harness: their own normalisers, readers and metadata. */
function ours(name: string, tool: string, text: (key: string) => string): Case {
  return {
    name,
    attack: async (world) => {
      world.defer(() => clean(world))
      world.put('ws/a.txt', 'a\n')
      world.put(
        'ws/rows.jsonl',
        `{"__proto__":{"${stain(world)}":1},"constructor":{"prototype":{"${stain(world)}":1}},"a":1}\n`,
      )
      const tools = world.defended ? world.files() : [{ ...taking(world), name: tool }]
      await world.call(tools, tool, raw(text(stain(world))))
    },
    harmed: stained,
  }
}

const policy: Case = {
  name: 'has a rule whose arguments are __proto__',
  attack: async (world) => {
    world.defer(() => clean(world))
    const text = `{"rules":[{"effect":"allow","args":{"__proto__.${stain(world)}":"1"}}],"__proto__":{"${stain(world)}":1}}`
    const written: unknown = JSON.parse(text)
    if (!world.defended) merge({ rules: [] }, written)
    else {
      try {
        parsePolicy(written)
      } catch {
        // Refused is fine.
      }
    }
  },
  harmed: stained,
}

/** A name that every object has is no field of the arguments: a rule on it must not match. */
const inherited: Case = {
  name: 'is let through by a rule on a name that every object has',
  attack: (world) => {
    const tool = defineTool({
      name: 'put',
      description: 'put',
      input: z.looseObject({}),
      approval: 'ask',
      execute: () => world.put('ws/ran', 'x'),
    })
    const asks = {
      ...tool,
      approval: (args: Json) => ('constructor' in (args as object) ? ('auto' as const) : ('ask' as const)),
    }
    const rules = [{ effect: 'allow', args: { constructor: '*' } }] as const
    return world.call(
      [world.defended ? tool : asks],
      'put',
      {},
      world.defended ? { approvals: { policy: { rules } } } : {},
    )
  },
  harmed: (world) => world.has('ws/ran'),
}

export const pollution: Row = {
  row: 48,
  title: 'names that change every object',
  // A polluted prototype of one case would be seen by all others.
  width: 1,
  cases: [
    argument('sends __proto__ as an argument', (key) => `{"__proto__":{"${key}":1}}`),
    argument('sends __proto__ deep in its arguments', (key) => `{"options":{"__proto__":{"${key}":1}}}`),
    argument('sends constructor.prototype as an argument', (key) => `{"constructor":{"prototype":{"${key}":1}}}`),
    argument('sends __proto__ in a text that is JSON', (key) => `{"options":"{\\"__proto__\\":{\\"${key}\\":1}}"}`),
    argument(
      'sends __proto__ beside something to repair',
      (key) => `{"list":"[\\"a\\"]","options":{"__proto__":{"${key}":1}}}`,
    ),
    ours(
      'sends __proto__ to edit',
      'edit',
      (key) => `{"path":"a.txt","old_string":"a","new_string":"b","__proto__":{"${key}":1}}`,
    ),
    ours(
      'sends __proto__ in a list of edits',
      'edit',
      (key) =>
        `{"__proto__":{"${key}":1},"edits":[{"path":"a.txt","oldString":"a","newString":"b","__proto__":{"${key}":1}}]}`,
    ),
    ours(
      'sends __proto__ to write in an envelope',
      'write',
      (key) => `{"constructor":{"prototype":{"${key}":1}},"arguments":{"path":"b.txt","content":"x"}}`,
    ),
    ours(
      'looks at rows that hold __proto__',
      'jsonl_search',
      (key) =>
        `{"path":"rows.jsonl","fields":{"__proto__":0,"__proto__.${key}":0,"constructor":0},"__proto__":{"${key}":1}}`,
    ),
    policy,
    inherited,
  ],
}
