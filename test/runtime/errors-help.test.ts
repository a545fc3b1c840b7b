// Errors that say what to do: what users of other libraries try first, and what a run says while it waits.
import { MockLanguageModelV3 } from 'ai/test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript-5.9'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import {
  cacheReplies,
  defineTool,
  fallback,
  Harness,
  type HarnessOptions,
  type Input,
  type Model,
  scripted,
} from '../../src/index.ts'
import { END, last, START, withState } from '../../src/graphs/index.ts'

const root = join(import.meta.dirname, '..', '..')
const SDK = /is a model of the AI SDK. Hand it over as fromAiSdk\(model\): import \{ fromAiSdk \} from 'terret\/ai-sdk'/

function harnessWith(options: Partial<HarnessOptions> = {}): Harness {
  const harness = new Harness({ model: scripted(['Hi', 'Hi']), ...options })
  onTestFinished(() => harness.close())
  return harness
}

describe('errors that help', () => {
  it('B-ERROR2-1: a model of the AI SDK that is handed over bare names fromAiSdk, wherever models are taken', () => {
    const bare = new MockLanguageModelV3() as unknown as Model
    const model = scripted([])
    expect(() => new Harness({ model: bare })).toThrow(SDK)
    expect(() => new Harness({ model, models: { named: { fast: bare } } })).toThrow(SDK)
    expect(() => new Harness({ model, models: { routes: { chat: bare } } })).toThrow(SDK)
    expect(() => new Harness({ model, subagents: { reader: { description: 'Reads.', model: bare } } })).toThrow(SDK)
    expect(() => fallback(model, bare)).toThrow(SDK)
    expect(() => cacheReplies(bare, { namespace: 'a' })).toThrow(SDK)
    expect(() => new Harness({ model: {} as Model })).toThrow(/is no model. Name one/)
  })

  const messages = [{ role: 'user', content: 'Hello' }]
  it('B-ERROR2-2: a conversation that is given to run is refused with the way, in each spelling, and nothing is written', async () => {
    const harness = harnessWith()
    const session = await harness.open()
    const way = /open\(\{ messages \}\)/
    for (const input of [{ messages }, messages, { messages: [] }] as unknown as readonly Input[]) {
      await expect(harness.run(input)).rejects.toThrow(way)
      await expect(session.run(input)).rejects.toThrow(way)
      await expect(session.send(input)).rejects.toThrow(way)
      await expect(harness.stream(input).result).rejects.toThrow(way)
    }
    const options = { messages } as object
    await expect(harness.run('Hello', options)).rejects.toThrow(way)
    await expect(session.run('Hello', options)).rejects.toThrow(way)
    expect((await harness.list({ order: 'id', limit: 500 })).cards).toHaveLength(1)
    expect((await session.events()).events).toHaveLength(1)
    await expect(harness.run('Hello', { temperature: 1 } as object)).rejects.toThrow(/settings: \{/)
    await expect(harness.run('Hello', { maxOutputTokens: 1 } as object)).rejects.toThrow(
      /settings: \{ outputTokensMax \}/,
    )
  })

  it('B-ERROR2-2: a workflow still reads an input of that name, and a model any other object', async () => {
    const { node, graph } = withState({ messages: last<readonly { role: string }[]>([]), said: last('') })
    const echo = graph({
      name: 'echo',
      nodes: { say: node({ effect: 'read', run: () => ({ said: 'yes' }) }) },
      edges: [
        [START, 'say'],
        ['say', END],
      ],
    })
    const harness = harnessWith({ graphs: [echo] })
    const { failure } = (await harness.run({ messages }, { agent: 'echo' })) as { readonly failure?: unknown }
    expect(failure).toBeUndefined()
    const empty = (await harness.run({ messages: [] }, { agent: 'echo' })) as { readonly failure?: unknown }
    expect(empty.failure).toBeUndefined()
    expect(await harness.run({ messages: ['a', 'b'] })).toMatchObject({ status: 'completed' })
  })

  it('B-ERROR2-3: a result that does not fit the schema of a tool is told as the fault of its handler', async () => {
    const wrong = defineTool({
      name: 'count',
      description: 'Counts.',
      input: z.object({}),
      output: z.object({ n: z.number() }),
      effect: 'read',
      // Only code without types can return this.
      execute: () => ({ n: 'one' as unknown as number }),
    })
    const model = scripted([{ calls: [{ tool: 'count', args: {} }] }, 'Done'])
    const { calls } = await harnessWith({ model, tools: [wrong] }).run('Count.')
    expect(calls[0]).toMatchObject({ status: 'error' })
    expect(calls[0]?.content).toMatch(
      /its handler returned what its schema `output` does not take at "n": .*arguments of the call are not at fault/,
    )
  })

  it('B-ERROR2-6: each failed try is told once, with the time of the next, and the last says how many there were', async () => {
    const model = scripted(() => ({ error: 'server', message: 'overloaded' }), 'a')
    const chain = fallback(
      model,
      scripted(() => ({ error: 'rate_limit', retryAfterMs: 20 }), 'b'),
    )
    const stream = harnessWith({ model: chain, limits: { modelAttempts: 3 } }).stream('Hello', { deltas: true })
    const told: { readonly message: string; readonly isWaiting: boolean }[] = []
    for await (const event of stream) {
      if (event.type !== 'model.failed') continue
      told.push({ message: event.message, isWaiting: event.retryable && (event.retryAt ?? 0) > event.at })
    }
    expect(told).toEqual([
      { message: 'overloaded', isWaiting: true },
      { message: 'overloaded', isWaiting: true },
      { message: 'overloaded. Given up after 3 tries.', isWaiting: false },
    ])
    expect(await stream.result).toMatchObject({ failure: { message: 'overloaded. Given up after 3 tries.' } })
  })
})

/** The fields of each hook's event but for those that all have, as the types in the source name them. */
function hookFields(): Readonly<Record<string, readonly string[]>> {
  const aliases = new Map<string, ts.TypeNode>()
  for (const path of ['src/runtime/state/hook-events.ts', 'src/view/pending-calls.ts']) {
    const source = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest)
    for (const each of source.statements) if (ts.isTypeAliasDeclaration(each)) aliases.set(each.name.text, each.type)
  }
  const fieldsOf = (node: ts.TypeNode): readonly string[] => {
    if (ts.isTypeLiteralNode(node)) return node.members.map(({ name }) => (name as ts.Identifier).text)
    if (ts.isIntersectionTypeNode(node) || ts.isUnionTypeNode(node)) return node.types.flatMap(fieldsOf)
    if (ts.isParenthesizedTypeNode(node)) return fieldsOf(node.type)
    if (ts.isConditionalTypeNode(node)) return fieldsOf(node.trueType)
    if (!ts.isTypeReferenceNode(node)) return []
    const { text } = node.typeName as ts.Identifier
    if (text === 'CallsOf') return ['tool', 'args']
    const alias = aliases.get(text)
    return [...(alias ? fieldsOf(alias) : []), ...(node.typeArguments ?? []).flatMap(fieldsOf)]
  }
  const events = aliases.get('HookEvents')
  if (!events || !ts.isTypeLiteralNode(events)) throw new Error('There is no type HookEvents.')
  const named = events.members.filter(ts.isPropertySignature).map((hook) => {
    const fields = hook.type ? new Set(fieldsOf(hook.type)) : []
    return [(hook.name as ts.Identifier).text, [...fields].filter((field) => !SHARED.includes(field)).sort()] as const
  })
  return Object.fromEntries(named)
}

const SHARED = ['session', 'agent', 'metadata']

describe('the guide to hooks', () => {
  it('B-ERROR2-4: names every field of every hook, and no other', () => {
    const typed = hookFields()
    const guide = readFileSync(join(root, 'docs', 'guide', 'hooks.md'), 'utf8')
    const [, section = ''] = /## What each hook is told\n([\s\S]*?)\n## /.exec(guide) ?? []
    for (const name of SHARED) expect(section.split('|')[0]).toContain(`\`${name}\``)
    const rows = [...section.matchAll(/^\| `(\w+)` \|(.*)\|$/gm)].map(([, hook = '', fields = '']) => {
      const names = [...fields.matchAll(/(?:^|[ ,;])`(\w+)`/g)].map(([, name = '']) => name)
      return [hook, [...new Set(names)].sort()] as const
    })
    expect(Object.keys(typed).length).toBeGreaterThan(13)
    expect(Object.fromEntries(rows)).toEqual(typed)
  })
})
