// llms.txt and llms-full.txt of the site: what a model reads of it, made of the pages. The one in the package is scripts/llms.ts.
import { readdirSync, readFileSync } from 'node:fs'
import { PARTS } from './pages.ts'

/** `addressOf`: the whole address of a page by its path from the root; null if it is not there. */
export type LlmsSite = {
  readonly root: string
  readonly description: string
  readonly addressOf: (path: string) => string | null
}

export function llmsTexts(site: LlmsSite): { readonly index: string; readonly full: string } {
  const pages = PARTS.flatMap(({ title, pages: all }) => {
    const paths = [...all.map(({ path }) => `${path}.md`), ...(title === 'Reference' ? apiPaths(site.root) : [])]
    return paths.flatMap((path) => pageAt(site, title, path))
  })
  const parts = PARTS.map(({ title }) => {
    const lines = pages.filter(({ part }) => part === title).map(({ line }) => line)
    return `## ${title}\n\n${lines.join('\n')}`
  })
  const head = `# Terret\n\n> ${site.description}\n`
  return {
    index: `${head}\n${parts.join('\n\n')}\n`,
    full: `${head}\n${pages.map(({ address, text }) => `<!-- ${address} -->\n\n${text}`).join('\n')}`,
  }
}

function apiPaths(root: string): readonly string[] {
  const folder = 'docs/reference/api'
  return readdirSync(`${root}/${folder}`).map((name) => `${folder}/${name}`)
}

function pageAt({ root, addressOf }: LlmsSite, part: string, path: string) {
  const address = addressOf(path)
  if (address === null) return []
  const text = readFileSync(`${root}/${path}`, 'utf8')
  const [, title = path, about = ''] = /^# (.+)\n\n(.+)\n/.exec(text) ?? []
  const line = `- [${title}](${address}): ${about.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')}`
  return [{ part, address, text, line }]
}
