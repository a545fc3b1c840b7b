// Row 47: patterns that take for ever, in the hands of tools that match them.
import { Worker } from 'node:worker_threads'
import { z } from 'zod'
import { defineTool, judge, type Tool } from '../../src/index.ts'
import type { Json } from '../../src/kernel/content.ts'
import type { Case, Row } from './case.ts'
import { bytesOf } from './naive.ts'
import type { World } from './world.ts'

const hung = new WeakSet<World>()
const LINE = `${'a'.repeat(60)}!`

/** JavaScript that matches as it was told, in a thread that ends with the world. */
function inThread(world: World, code: string): Promise<unknown> {
  const worker = new Worker(code, { eval: true })
  world.defer(() => worker.terminate())
  return new Promise((resolve) => worker.once('exit', resolve))
}

const matching = (world: World, pattern: string, text: string): Promise<unknown> =>
  inThread(world, `new RegExp(${JSON.stringify(pattern)}).test(${JSON.stringify(text)})`)

function naive(world: World, tool: string, find: (args: Json) => Promise<unknown>): Tool {
  return defineTool({ name: tool, description: tool, input: z.looseObject({}), execute: (args) => find(args as Json) })
}

/** The harm is a call that does not come back. */
function slow(name: string, tool: string, args: Json, pattern: string): Case {
  return {
    name,
    attack: async (world) => {
      world.put('ws/rows.jsonl', `${JSON.stringify({ a: LINE, text: LINE })}\n`)
      world.put('ws/text.txt', `${LINE}\n`)
      const tools = world.defended
        ? world.files()
        : [naive(world, tool, () => matching(world, pattern, bytesOf(world, 'text.txt')))]
      if (!(await world.ends(world.call(tools, tool, args)))) hung.add(world)
    },
    harmed: (world) => hung.has(world),
  }
}

const where = (value: string): Json => ({ path: 'rows.jsonl', where: [{ field: 'a', op: 'regex', value }] })
const within = (query: string): Json => ({
  path: 'rows.jsonl',
  field_searches: [{ field: 'text', query, regex: true }],
})

/** Patterns of the real tool must be as evil as those of the naive one, and slip past a simple check where they can. */
const EVIL = [
  '(a+)+$',
  '(a|a)*$',
  '(a|aa)+$',
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  'a*a*a*a*a*a*a*a*a*a*a*a*$',
  '(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)[^!]{3}$',
]

/** A glob that says very many things in few words. */
const EXPLOSION = `${'{a,b}'.repeat(40)}*`
const expand = `const expand = (text) => { const at = text.indexOf('{'); if (at < 0) return [text]; const end = text.indexOf('}', at); return text.slice(at + 1, end).split(',').flatMap((one) => expand(text.slice(0, at) + one + text.slice(end + 1))) }; expand(${JSON.stringify(EXPLOSION)})`

function exploding(tool: string, args: Json): Case {
  return {
    name: `asks ${tool} for a glob that stands for a trillion names`,
    attack: async (world) => {
      world.put('ws/text.txt', `${LINE}\n`)
      const tools = world.defended ? world.files() : [naive(world, tool, () => inThread(world, expand))]
      if (!(await world.ends(world.call(tools, tool, args)))) hung.add(world)
    },
    harmed: (world) => hung.has(world),
  }
}

/** Rules are the user's, but what they are matched with is the model's. */
function judged(name: string, pattern: string, text: string, regex: string): Case {
  return {
    name,
    attack: async (world) => {
      const action = { tool: 'bash', args: { command: text, path: text }, approval: 'ask' } as const
      const rules = [
        { effect: 'allow', args: { command: pattern } },
        { effect: 'deny', path: pattern },
      ] as const
      const work = world.defended
        ? Promise.resolve().then(() => judge({ rules }, action))
        : matching(world, regex, text)
      if (!(await world.ends(work))) hung.add(world)
    },
    harmed: (world) => hung.has(world),
  }
}

const STARS = '*a'.repeat(30)

export const patterns: Row = {
  row: 47,
  title: 'patterns that take for ever',
  cases: [
    ...EVIL.map((pattern) => slow(`filters rows by ${pattern}`, 'jsonl_search', where(pattern), EVIL[0] ?? '')),
    ...EVIL.slice(0, 3).map((pattern) =>
      slow(`looks into rows by ${pattern}`, 'jsonl_search', within(pattern), EVIL[1] ?? ''),
    ),
    slow('searches files by (a+)+$', 'search', { pattern: '(a+)+$' }, '(a+)+$'),
    slow(
      'searches files by a repetition of repetitions',
      'search',
      { pattern: '((a{1,100}){1,100}){1,100}$' },
      '((a{1,9})+)+$',
    ),
    slow('searches rows by (a+)+$', 'jsonl_search', { path: '.', query: '(a|aa)+$' }, '(a|aa)+$'),
    exploding('glob', { pattern: EXPLOSION }),
    exploding('search', { pattern: 'a', glob: EXPLOSION }),
    exploding('jsonl_search', { path: EXPLOSION }),
    judged(
      'writes a command that a rule with many stars looks at',
      `${STARS}*b`,
      'a'.repeat(60),
      `^${STARS.replaceAll('*', '.*')}.*b$`,
    ),
    judged(
      'writes a path that a rule with many stars looks at',
      `${'**/a/'.repeat(30)}b`,
      'a/'.repeat(60),
      `^${'(.*/)*a/'.repeat(30)}b$`,
    ),
  ],
}
