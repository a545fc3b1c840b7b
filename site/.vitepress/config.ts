// The site of the documentation, made of the Markdown files as they stand in the repository. See docs/decisions/0193.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'
import { slug } from '../../scripts/reference/markdown.ts'
import { linkAddress, type Site } from '../links.ts'
import { llmsTexts } from '../llms.ts'
import { NOT_ON_SITE, PARTS } from '../pages.ts'
import { MINI_SEARCH, sectionsOf } from '../search.ts'

const root = join(dirname(fileURLToPath(import.meta.url)), '../..')
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly homepage: string
  readonly description: string
  readonly repository: { readonly url: string }
}
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, '')

const site: Site = {
  root,
  files: repository,
  addressOf: (path) =>
    isPage(path)
      ? `/${addressIn(path)
          .replace(/(^|\/)index\.md$/, '$1')
          .replace(/\.md$/, '')}`
      : null,
}

export default defineConfig({
  title: 'Terret',
  description: manifest.description,
  lang: 'en',
  base: `${new URL(manifest.homepage).pathname.replace(/\/$/, '')}/`,
  srcDir: root,
  srcExclude: ['[^R]*.md', '!(docs)/**/*', 'docs/decisions/**', ...NOT_ON_SITE.map((path) => `${path}.md`)],
  outDir: join(root, 'site/dist'),
  cacheDir: join(root, 'site/node_modules/.cache/vitepress'),
  rewrites: addressIn,
  cleanUrls: true,
  // The rule of links.ts is stricter, and has looked at each before.
  ignoreDeadLinks: false,
  markdown: {
    html: false,
    anchor: { slugify: slug },
    config: (md) => {
      // HTML is not drawn, but the README folds a text away as a forge knows it: here it is a container.
      md.core.ruler.before('normalize', 'folded', (state) => {
        state.src = state.src
          .replace(/^<details><summary>(.*)<\/summary>$/gm, '::: details $1')
          .replace(/^<\/details>$/gm, ':::')
      })
      md.core.ruler.push('site-links', (state) => {
        const { path: address, realPath = address } = state.env as {
          readonly path?: string
          readonly realPath?: string
        }
        // The title of a container is drawn by itself, without a page.
        if (realPath === undefined) return
        const path = relative(root, realPath)
        for (const token of state.tokens.flatMap(({ children }) => children ?? [])) {
          if (token.type === 'link_open') token.attrSet('href', linkAddress(site, path, token.attrGet('href') ?? ''))
        }
      })
    },
  },
  buildEnd: ({ outDir }) => {
    const { index, full } = llmsTexts({
      root,
      description: manifest.description,
      addressOf: (path) => (isPage(path) ? `${manifest.homepage}${site.addressOf(path) ?? ''}` : null),
    })
    writeFileSync(join(outDir, 'llms.txt'), index)
    writeFileSync(join(outDir, 'llms-full.txt'), full)
  },
  themeConfig: {
    nav: PARTS.map(({ title, pages }) => {
      return { text: title, link: pages.map(({ path }) => linkOf(path)).find((link) => link !== null) ?? '/' }
    }),
    sidebar: PARTS.map(({ title, pages }) => ({
      text: title,
      // The part of the page that is open is unfolded by itself.
      collapsed: true,
      items: [...itemsOf(pages.map(({ path }) => path)), ...apiItems(title)],
    })),
    outline: { level: [2, 3] },
    docFooter: { prev: 'Before', next: 'Next' },
    search: {
      provider: 'local',
      options: {
        // The sections are read from the file, so nothing has to be drawn for them.
        _render: () => '',
        miniSearch: {
          ...MINI_SEARCH,
          _splitIntoSections: (file: string) => sectionsOf(root, relative(root, file)) as never,
        },
      },
    },
  },
  vite: {
    server: { fs: { allow: [root] } },
    // The configuration beside it is that of the inspector.
    configFile: false,
    plugins: [packagesOfSite(), groupedResults()],
    build: { chunkSizeWarningLimit: 4_000 },
  },
})

type Resolver = { resolve: (id: string, importer: string) => Promise<unknown> }

/** Pages become modules that import Vue, and stand where Node.js would not find it. */
function packagesOfSite() {
  return {
    name: 'packages-of-site',
    enforce: 'pre' as const,
    resolveId(this: Resolver, id: string, importer: string | undefined, { ssr }: { readonly ssr?: boolean }) {
      if (!/^vue(\/|$)/.test(id)) return null
      if (ssr) return { id, external: true }
      return importer?.replace(/\?.*/, '').endsWith('.md') ? this.resolve(id, join(root, 'site/pages.ts')) : null
    },
  }
}

function isPage(path: string): boolean {
  if (path === 'README.md') return true
  const isOff = NOT_ON_SITE.includes(path.replace(/\.md$/, '')) || path.startsWith('docs/decisions/')
  return path.startsWith('docs/') && path.endsWith('.md') && !isOff && existsSync(join(root, path))
}

/** `docs/guide/tools.md` is `guide/tools`, and the README of a folder is its index. */
function addressIn(path: string): string {
  return path.replace(/^docs\//, '').replace(/(^|\/)README\.md$/, '$1index.md')
}

function linkOf(path: string): string | null {
  return site.addressOf(`${path}.md`)
}

function itemsOf(paths: readonly string[]): { text: string; link: string }[] {
  return paths.flatMap((path) => {
    const link = linkOf(path)
    return link === null ? [] : [{ text: titleOf(path), link }]
  })
}

function titleOf(path: string): string {
  const text = readFileSync(join(root, `${path}.md`), 'utf8')
  return (/^# (.+)$/m.exec(text)?.[1] ?? path).replaceAll('`', '')
}

function apiItems(title: string): { text: string; collapsed: boolean; items: { text: string; link: string }[] }[] {
  const folder = 'docs/reference/api'
  if (title !== 'Reference' || !existsSync(join(root, folder))) return []
  const paths = readdirSync(join(root, folder))
    .sort()
    .map((name) => `${folder}/${name.replace(/\.md$/, '')}`)
  return [{ text: 'API', collapsed: true, items: itemsOf(paths) }]
}

/**
 * The results of one page stand together, at the place of its best one, three at most. The box has no setting for this, so its
 * source is changed; the build fails when that place has changed.
 */
function groupedResults() {
  return {
    name: 'grouped-results',
    enforce: 'pre' as const,
    transform(code: string, id: string) {
      if (!id.endsWith('VPLocalSearchBox.vue')) return null
      const place = /index\s*\.search\(filterTextValue\)\s*\.slice\(0, 16\)/
      if (!place.test(code)) throw new Error('The search box of VitePress has changed. See groupedResults.')
      return code.replace(
        place,
        `(() => {
      const pages = new Map()
      for (const found of index.search(filterTextValue)) {
        const page = found.id.replace(/#.*/, '')
        const group = pages.get(page) ?? []
        if (group.length < 3) pages.set(page, [...group, found])
      }
      return [...pages.values()].slice(0, 8).flat()
    })()`,
      )
    },
  }
}
