// The rule for links: one to a page of the site gets its address there, one to another file of the repository gets the address of
// the file, and one to nothing, or to a heading that is not there, fails the build.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, posix } from 'node:path'
import { slug } from '../scripts/reference/markdown.ts'

export type Site = {
  readonly root: string
  /** The address of the files of the repository. */
  readonly files: string
  /** The address of a page in the site; null for what is no page of it. */
  readonly addressOf: (path: string) => string | null
}

/** `path`: the file with the link, from the root. */
export function linkAddress(site: Site, path: string, href: string): string {
  if (/^[a-z]+:|^\/\//.test(href)) return href
  const [file = '', anchor] = href.split('#')
  const target = file === '' ? path : posix.normalize(posix.join(dirname(path), decodeURI(file)))
  if (target.startsWith('..') || !existsSync(`${site.root}/${target}`)) throw dead(path, href)
  const page = /\.md$/.test(target) ? target : `${target.replace(/\/$/, '')}/README.md`
  if (anchor !== undefined && /\.md$/.test(target) && !anchorsIn(`${site.root}/${target}`).has(anchor))
    throw dead(path, href)
  const address = site.addressOf(page)
  const tail = anchor === undefined ? '' : `#${anchor}`
  if (address !== null) return `${address}${tail}`
  const kind = statSync(`${site.root}/${target}`).isDirectory() ? 'tree' : 'blob'
  return `${site.files}/${kind}/main/${target.replace(/\/$/, '')}${tail}`
}

function dead(path: string, href: string): Error {
  return new Error(`${path} links to ${href}, which is not there.`)
}

const known = new Map<string, ReadonlySet<string>>()

function anchorsIn(file: string): ReadonlySet<string> {
  const found = known.get(file) ?? readAnchors(file)
  known.set(file, found)
  return found
}

function readAnchors(file: string): ReadonlySet<string> {
  const text = readFileSync(file, 'utf8').replace(/^(```|~~~)[^]*?^\1/gm, '')
  const anchors = new Set<string>()
  for (const [, heading = ''] of text.matchAll(/^#{1,6} (.+)$/gm)) {
    const first = slug(heading)
    let anchor = first
    for (let i = 1; anchors.has(anchor); i++) anchor = `${first}-${i}`
    anchors.add(anchor)
  }
  return anchors
}
