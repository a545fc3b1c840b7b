// `terret_docs`: the documentation that ships with the package, for the agent that answers questions about it. It reads
// only these files: a page has a name from the list, never a path.
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ToolFailure } from '../tools/core/tool-output.ts'
import { type Infer, objectField, optionalField, textField } from '../tools/core/argument-schema.ts'
import { defineTool, type Tool } from '../tools/core/tool.ts'

export const DOCS_TOOL = 'terret_docs'
const FOLDERS = ['docs/guide', 'docs/recipes'] as const
const LINES_MAX = 60
const LINE_CHARS_MAX = 300

const input = objectField({
  page: optionalField(
    textField('The page to read, by its name in the list, such as "guide/cli".', { min: 1, max: 100 }),
  ),
  query: optionalField(
    textField('Words to find: the lines that have all of them, with their pages.', { min: 1, max: 200 }),
  ),
})
type Args = Infer<typeof input>

export function docsTool(): Tool {
  return defineTool<Args>({
    name: DOCS_TOOL,
    description:
      'The documentation of this harness: with a page its text, with a query the lines that have its words, with neither the list of pages.',
    input,
    effect: 'read',
    execute: async ({ page, query }) => {
      const pages = await readPages()
      if (page !== undefined) return pageOf(pages, page)
      if (query !== undefined) return findLines(pages, query)
      return [...pages].map(([name, said]) => `${name}: ${pageTitle(said)}`).join('\n')
    },
  })
}

type Pages = ReadonlyMap<string, string>

async function readPages(): Promise<Pages> {
  const root = packageRoot()
  const pages = new Map<string, string>()
  for (const folder of root === null ? [] : FOLDERS) {
    const names = await readdir(join(root ?? '', folder)).catch(() => [])
    for (const name of names.filter((each) => each.endsWith('.md')).toSorted())
      pages.set(
        `${folder.slice('docs/'.length)}/${name.slice(0, -'.md'.length)}`,
        await readFile(join(root ?? '', folder, name), 'utf8'),
      )
  }
  if (pages.size === 0) throw new ToolFailure('NotFound', 'The documentation is not installed beside this package.')
  return pages
}

/** The folder above this module with the guides. The build puts this module into several places. */
function packageRoot(): string | null {
  let folder = dirname(fileURLToPath(import.meta.url))
  for (let up = 0; up < 5; up++) {
    if (existsSync(join(folder, 'docs', 'guide', 'quickstart.md'))) return folder
    folder = dirname(folder)
  }
  return null
}

function pageOf(pages: Pages, name: string): string {
  const said = pages.get(name) ?? pages.get(`guide/${name}`)
  if (said !== undefined) return said
  throw new ToolFailure('NotFound', `There is no page "${name}". There are: ${[...pages.keys()].join(', ')}.`)
}

function findLines(pages: Pages, query: string): string {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  const found = [...pages].flatMap(([name, said]) =>
    said.split('\n').flatMap((line, i) => {
      const low = line.toLowerCase()
      return words.every((word) => low.includes(word))
        ? [`${name}:${i + 1}: ${line.trim().slice(0, LINE_CHARS_MAX)}`]
        : []
    }),
  )
  if (found.length === 0)
    return `No line has all of these words. Try fewer, or read a page: ${[...pages.keys()].join(', ')}.`
  const more = found.length > LINES_MAX ? [`${found.length - LINES_MAX} more lines have them: use more words.`] : []
  return [...found.slice(0, LINES_MAX), ...more].join('\n')
}

function pageTitle(said: string): string {
  return /^# (.*)$/m.exec(said)?.[1] ?? ''
}
