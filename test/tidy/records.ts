// Rules that tie written things together: event types, golden logs, links, and what may not be named.
// It reads text and syntax only. What the words mean is for the tests that cite them.
import { posix } from 'node:path'
import { nameOf, nodeAt, type SourceFile, type TextFile, type Violation, violation, walk } from './source.ts'

export function unfoldedEvents(types: readonly string[], fold: SourceFile): readonly Violation[] {
  const cases = new Set<string | null>()
  walk(fold.program, (node) => {
    if (node.type === 'SwitchCase') cases.add(nameOf(nodeAt(node, 'test')))
  })
  return types.filter((type) => !cases.has(type)).map((type) => violation(fold, 0, `has no case for ${type}`))
}

export function unloggedEvents(types: readonly string[], golden: readonly TextFile[]): readonly Violation[] {
  const logged = new Set(golden.flatMap((log) => log.text.split('\n').map(typeOfLine)))
  return types.filter((type) => !logged.has(type)).map((type) => `test/golden:1 no log holds ${type}`)
}

function typeOfLine(line: string): unknown {
  if (line.trim() === '') return null
  const event = JSON.parse(line) as { readonly type?: unknown; readonly body?: { readonly type?: unknown } }
  return event.type ?? event.body?.type
}

const markdownLink = /\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g

/** `exists` answers for a path relative to the repository. Addresses and anchors within the page are left alone. */
export function deadLinks(pages: readonly TextFile[], exists: (path: string) => boolean): readonly Violation[] {
  return pages.flatMap((page) =>
    [...withoutCode(page.text).matchAll(markdownLink)].flatMap((match) => {
      const target = (match[1] ?? '').split('#')[0] ?? ''
      if (target === '' || /^[a-z][a-z0-9+.-]*:/i.test(target)) return []
      const path = posix.normalize(posix.join(posix.dirname(page.path), decodeURI(target)))
      return exists(path) ? [] : [violation(page, match.index, `links to ${target}, which is not there`)]
    }),
  )
}

/** The rooms: folders of src, and those of its runtime and its tools, that no page names in back-ticks. */
export function unnamedFolders(files: readonly TextFile[], pages: readonly TextFile[]): readonly Violation[] {
  const folders = files.flatMap(({ path }) => /^src\/(?:(?:runtime|tools)\/)?[a-z]+(?=\/)/.exec(path)?.[0] ?? [])
  const named = pages.flatMap((page) => pathsIn(page).map(({ path }) => `${path}/`))
  const pageNames = pages.map(({ path }) => path).join(' and ')
  return [...new Set(folders)]
    .filter((folder) => !named.some((path) => path.startsWith(`${folder}/`)))
    .map((folder) => `${folder}:1 is named in none of ${pageNames}`)
}

/** What a page names in back-ticks as a path of this repository, and is not there. */
export function deadPaths(pages: readonly TextFile[], exists: (path: string) => boolean): readonly Violation[] {
  return pages.flatMap((page) =>
    pathsIn(page).flatMap(({ path, offset }) =>
      exists(path) ? [] : [violation(page, offset, `names ${path}, which is not there`)],
    ),
  )
}

/** In back-ticks: paths of this repository, and what the line of such a folder names in it (`drive/`, `fold.ts`). */
function pathsIn(page: TextFile): readonly { readonly path: string; readonly offset: number }[] {
  let offset = 0
  return page.text.split('\n').flatMap((line) => {
    const start = offset
    offset += line.length + 1
    const folder = /`((?:src|sim|test)\/[^`]*\/)`/.exec(line)?.[1] ?? null
    return [...line.matchAll(/`([\w.-]+(?:\/[\w.-]*)*)[^`]*`/g)].flatMap(({ 1: path = '', index }) => {
      const at = { path, offset: start + index }
      if (/^(?:src|sim|test|docs|scripts|bench|examples)\//.test(path)) return [at]
      const isInside = folder !== null && /^[\w-]+(?:\/[\w-]+)*(?:\.tsx?|\/)$/.test(path)
      return isInside ? [{ ...at, path: `${folder}${path}` }] : []
    })
  })
}

/** Blanks code, letter by letter, so that offsets stay true. */
function withoutCode(text: string): string {
  return text.replace(/^```[^]*?^```|`[^`\n]*`/gm, (code) => code.replace(/[^\n]/g, ' '))
}

// Written in pieces, so that this file does not name what it forbids.
const machinePath = new RegExp(`(?<![\\w./~-])${['', 'work', ''].join('/')}`, 'g')
const registryHost = new RegExp(
  [
    'registry\\.(npmjs|yarnpkg)\\.',
    'npm\\.pkg\\.github',
    'https?://[\\w.-]*(registry|artifactory|nexus|verdaccio)',
  ].join('|'),
  'gi',
)

/** The repository speaks of the project alone: not of the machine it was written on, nor of where packages come from. */
export function foreignNames(files: readonly TextFile[]): readonly Violation[] {
  return files.flatMap((file) => [
    ...[...file.text.matchAll(machinePath)].map((match) => violation(file, match.index, 'names a path of one machine')),
    ...[...file.text.matchAll(registryHost)].map((match) => violation(file, match.index, 'names a package registry')),
  ])
}
