// What the 300 turns of `context` read: files of this repository, searches over them, and the outputs of real programs that the tests
// have. Every byte of it is in the repository, so everyone measures the same.
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { ContentHint, Json } from '../src/index.ts'
import { OUTPUTS } from '../test/context/outputs.ts'

/** One call of the script, what it returns, and what the router is told of it. */
export type Look = { readonly tool: string; readonly args: Json; readonly text: string; readonly hint: ContentHint }

const FILE_BYTES_MIN = 2_000
const FILE_BYTES_MAX = 40_000

/** In each ten turns: three outputs of commands, two files of code, two searches, two of JSON, and one page, diff or text. */
export function looks(count: number): readonly Look[] {
  const [runs, files, searches, documents] = [runOutputs(), codeFiles(), searchesOf(codeFiles()), jsonTexts()]
  const others = [texts(), webPages(), diffs()]
  const kinds = [runs, files, searches, documents, runs, files, searches, documents, runs]
  const taken = new Map<readonly Look[], number>()
  return Array.from({ length: count }, (_, turn) => {
    const list = kinds[turn % 10] ?? others[Math.floor(turn / 10) % others.length] ?? []
    const n = taken.get(list) ?? 0
    taken.set(list, n + 1)
    const { tool, args, text, hint } = list[n % list.length] as Look
    return { tool, args: { ...(args as Record<string, Json>), turn }, text, hint }
  })
}

function outputsOf(...kinds: readonly string[]) {
  return OUTPUTS.filter(({ kind }) => kinds.includes(kind))
}

function runOutputs(): readonly Look[] {
  return outputsOf('log').map(({ hint, text }) => run(hint.command ?? 'tail -n 110 dpkg.log', text))
}

function diffs(): readonly Look[] {
  return outputsOf('diff').map(({ hint, text }) => run(hint.command ?? 'git diff', text))
}

function run(command: string, text: string): Look {
  return { tool: 'run', args: { command }, text, hint: { tool: 'run', command } }
}

function show(path: string, text: string): Look {
  return { tool: 'show', args: { path }, text, hint: { tool: 'show', path } }
}

function codeFiles(): readonly Look[] {
  return filesIn('src', '.ts').map((path) => show(path, readFileSync(path, 'utf8')))
}

function texts(): readonly Look[] {
  return filesIn('docs', '.md').map((path) => show(path, readFileSync(path, 'utf8')))
}

function webPages(): readonly Look[] {
  return outputsOf('html').map(({ name, text }) => show(name, text))
}

/** Answers as services and programs give them, files of events, and the lockfile. */
function jsonTexts(): readonly Look[] {
  const files = [...filesIn('test/golden', '.json'), ...filesIn('test/golden', '.jsonl'), 'package-lock.json']
  return [
    ...outputsOf('json').map(({ name, text }) => show(name, text)),
    ...files.map((path) => show(path, readFileSync(path, 'utf8'))),
  ]
}

const WORDS =
  'session model event tool async readonly error store commit lease message result request budget signal'.split(' ')

/** What `grep -n` prints of a room of the source. */
function searchesOf(files: readonly Look[]): readonly Look[] {
  const rooms = ['src/kernel/', 'src/engine/', 'src/effects/', 'src/stores/', 'src/models/', 'src/tools/']
  return WORDS.flatMap((query) =>
    rooms.map((room) => {
      const found = files.flatMap(({ args, text }) => {
        const { path } = args as { path: string }
        return path.startsWith(room) ? linesWith(path, text, query) : []
      })
      return { tool: 'grep', args: { query, room }, text: found.join('\n'), hint: { tool: 'grep', query } }
    }),
  )
}

function linesWith(path: string, text: string, word: string): readonly string[] {
  return text.split('\n').flatMap((line, i) => (line.includes(word) ? [`${path}:${i + 1}:${line}`] : []))
}

function filesIn(folder: string, ending: string): readonly string[] {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
  return paths
    .filter((path) => {
      const bytes = path.endsWith(ending) ? statSync(path).size : 0
      return bytes >= FILE_BYTES_MIN && bytes <= FILE_BYTES_MAX
    })
    .toSorted()
}
