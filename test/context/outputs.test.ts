// The content router over what real programs printed (outputs/): each file smaller or as it was, readable back where nothing is lost,
// with its errors where something is, and the original byte for byte.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { compressContent, defineTool, Harness, type Json, type Message, scripted } from '../../src/index.ts'
import type { Sample } from './corpus.ts'
import { OUTPUTS } from './outputs.ts'

const EACH = OUTPUTS.map((sample) => [sample.name, sample] as const)
const keep = (): string => 'a'.repeat(32)

describe('what real programs printed', () => {
  it.each(EACH)('B-COMPRESS-40: %s is smaller or as it was', async (_name, { text, hint, kind }) => {
    for (const profile of ['full', 'light'] as const) {
      const made = await compressContent(text, hint, { keep, profile })
      expect(made.kind).toBe(kind)
      expect(made.changed || made.content === text).toBe(true)
      expect(made.changed).toBe(Buffer.byteLength(made.content) < Buffer.byteLength(text))
    }
  })

  it.each(EACH)('B-COMPRESS-40: without loss, %s can be read back', async (_name, { text, hint, kind }) => {
    const made = await compressContent(text, hint, { keep, profile: 'light' })
    expect(made.lossy).toBe(false)
    if (made.changed) expect(readBack(made.content, kind)).toEqual(meaning(text, kind))
  })

  it.each(EACH)('B-COMPRESS-40: with loss, %s keeps every error line', async (_name, { text, hint, kind }) => {
    const { content, lossy } = await compressContent(text, hint, { keep })
    if (!lossy || kind !== 'log') return
    const shown = new Set(withoutColors(content).split('\n').map(kindOfLine))
    const errors = withoutColors(text)
      .split('\n')
      .filter((line) => ERROR.test(line))
    for (const line of errors) expect(shown).toContain(kindOfLine(line))
  })

  it('B-COMPRESS-40: of the errors in these outputs, what belongs to them is shown too', async () => {
    const shownOf = async (name: string): Promise<string> => {
      const { text, hint } = OUTPUTS.find((sample) => sample.name === name) as Sample
      return (await compressContent(text, hint, { keep })).content
    }
    expect(await shownOf('cargo-build.txt')).toContain('106 |     format!("{to}: {}", missing)')
    expect(await shownOf('cargo-test.txt')).toContain('  left: 600\n right: 601\n')
    expect(await shownOf('kubectl-pods.txt')).toMatch(/CrashLoopBackOff +42[^]*ImagePullBackOff/)
    expect(await shownOf('vitest.txt')).toContain('-   "lossy": true,\n+   "lossy": false,')
  })

  it('B-COMPRESS-40: an agent gets each original byte for byte', async () => {
    const left = [...OUTPUTS]
    const shown: string[] = []
    const model = scripted(({ messages }) => {
      const last = textOf(messages.at(-1))
      const token = /⟦tj:([0-9a-f]{32})⟧\]$/.exec(last)?.[1]
      if (token !== undefined) return { calls: [{ tool: 'retrieve_original', args: { token } }] }
      if (last !== '') shown.push(last)
      const next = left.shift()
      return next === undefined ? 'Done.' : { calls: [{ tool: 'output', args: argsOf(next) }] }
    })
    const tool = defineTool({
      name: 'output',
      description: 'd',
      input: z.object({ name: z.string(), command: z.string().optional(), path: z.string().optional() }),
      effect: 'read',
      execute: ({ name }) => OUTPUTS.find((sample) => sample.name === name)?.text ?? '',
    })
    const limits = { modelRequests: 4 * OUTPUTS.length }
    const harness = new Harness({ model, tools: [tool], results: { compression: 'full' }, limits })
    const { status } = await harness.run('Go.')
    await harness.close()
    expect(status).toBe('completed')
    expect(shown).toEqual(OUTPUTS.map(({ text }) => text))
  })
})

const ERROR = /\berror(?:\[|:| TS)|^E {3}|\bFAILED\b|\bpanicked\b|^\s*[✗×] |^[A-Z]\w*Error\b|BackOff\b/

/** Equal errors are counted in one line: numbers and hashes make no other kind. */
function kindOfLine(line: string): string {
  return line
    .replace(/ \[… [^\]]+\]$/, '')
    .replace(/ \(×\d+(?: alike)?\)$/, '')
    .replace(/0x[0-9a-f]+|[0-9a-f]{8,}|\d+/gi, '#')
}

function withoutColors(text: string): string {
  // oxlint-disable-next-line no-control-regex -- they are what it is about
  return text.replace(/\u001B\[[0-9;?]*[A-Za-z]/g, '')
}

function textOf(message: Message | undefined): string {
  return message?.role === 'tool' && typeof message.content === 'string' ? message.content : ''
}

function argsOf({ name, hint: { command, path } }: Sample): Json {
  return { name, ...(command === undefined ? {} : { command }), ...(path === undefined ? {} : { path }) }
}

/** What an output says, whatever its blanks: the values of JSON, and the matches of a search by file. */
function meaning(text: string, kind: string): unknown {
  if (kind === 'search')
    return text
      .split('\n')
      .filter((line) => line !== '')
      .toSorted()
  if (kind !== 'json') return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text.split('\n').flatMap((line): unknown => (line === '' ? [] : [JSON.parse(line)]))
  }
}

function readBack(content: string, kind: string): unknown {
  const body = content.slice(0, content.lastIndexOf('\n['))
  if (kind === 'search') return matchesIn(body).toSorted()
  if (kind === 'json') return valueIn(body)
  return body
    .split('\n')
    .flatMap((line) => {
      const [, folder, names] = /^([^ ]*\/): (.+)$/.exec(line) ?? []
      if (folder !== undefined) return (names ?? '').split(' ').map((name) => folder + name)
      const [all = '', times = '1'] = / \(×(\d+)\)$/.exec(line) ?? []
      return Array.from({ length: Number(times) }, () => line.slice(0, line.length - all.length))
    })
    .join('\n')
}

function matchesIn(body: string): string[] {
  let path = ''
  return body.split('\n').flatMap((line) => {
    if (line.startsWith('  ')) return [`${path}:${line.slice(2)}`]
    path = line
    return []
  })
}

/** A value in one line, with `<table 1>` where a table below it belongs; or one table. */
function valueIn(body: string): unknown {
  if (/^\d+ rows(?: by key)?, columns/.test(body)) return rowsIn(body)
  const [value = '', ...tables] = body.split(/\ntable \d+: (?=\d+ rows(?: by key)?, columns)/)
  const named = value.replace(/"(?:[^"\\]|\\.)*"|<table (\d+)>/g, (all, n?: string) =>
    n === undefined ? all : JSON.stringify({ $table: Number(n) }),
  )
  return JSON.parse(named, (_key, each: unknown) => {
    const n = (each as { $table?: number } | null)?.$table
    return n === undefined ? each : rowsIn(tables[n - 1] ?? '')
  }) as unknown
}

function rowsIn(table: string): unknown {
  const [title = '', head = '', ...lines] = table.split('\n')
  const columns = head.split('\t').map(cellIn)
  const byKey = title.includes(' by key, ')
  const cellsOf = (line: string) =>
    line.split('\t').map((cell, i) => [columns[i], cell === '' ? null : cellIn(cell), cell])
  const rows = lines.map((line) => {
    const [key, ...cells] = byKey ? cellsOf(line) : [null, ...cellsOf(line)]
    const row: unknown = Object.fromEntries(cells.flatMap((cell) => (cell?.[2] === '' ? [] : [[cell?.[0], cell?.[1]]])))
    return [key?.[1], row]
  })
  return byKey ? Object.fromEntries(rows) : rows.map(([, row]) => row)
}

function cellIn(cell: string): unknown {
  try {
    return JSON.parse(cell) as unknown
  } catch {
    return cell
  }
}
