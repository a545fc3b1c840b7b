// The index of what the package brings to read: llms.txt, made of the first lines of each guide, recipe, page on moving from another library, and example. Reads only.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export function llmsIndex(root: string): string {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly description: string
    readonly exports: Readonly<Record<string, unknown>>
  }
  const entries = Object.keys(manifest.exports).filter((entry) => entry !== './package.json')
  const imports = entries.map((entry) => `\`${entry.replace('.', 'terret')}\``).join(', ')
  return `# Terret

> ${manifest.description}

All of this is in the package: paths are relative to this file. Import from ${imports}; the types of each are in \`dist/\`. Start with the quickstart, then take the recipe nearest to what you build. An option that does not exist is refused with the nearest one, and every error has a stable \`code\`.

## Guides

${pagesIn(root, 'docs/guide')}

## Recipes

${pagesIn(root, 'docs/recipes')}

## From others

${pagesIn(root, 'docs/from')}

## Examples

${examplesIn(root)}

## Optional

- [Terret beside others](docs/compare.md): what it has and lacks beside other libraries, and what those do better.
- [Changes](CHANGELOG.md): what changed for the people who use Terret.
`
}

/** The quickstart and the overview of a folder come first, the others by name. */
function pagesIn(root: string, folder: string): string {
  const first = (name: string): number => (name === 'README.md' || name === 'quickstart.md' ? 0 : 1)
  const names = readdirSync(join(root, folder)).filter((name) => name.endsWith('.md'))
  const lines = names
    .sort((a, b) => first(a) - first(b) || a.localeCompare(b))
    .map((name) => {
      const text = readFileSync(join(root, folder, name), 'utf8')
      const [, title = '', about = ''] = /^# (.+)\n\n(.+)\n/.exec(text) ?? []
      if (title === '') throw new Error(`${folder}/${name} must begin with a title, an empty line and a paragraph.`)
      return `- [${title}](${folder}/${name}): ${about.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')}`
    })
  return lines.join('\n')
}

function examplesIn(root: string): string {
  const names = readdirSync(join(root, 'examples')).filter((name) => /^\d\d-/.test(name))
  const lines = names.sort().map((name) => {
    const path = name.endsWith('.ts') ? `examples/${name}` : `examples/${name}/server.ts`
    const text = readFileSync(join(root, path), 'utf8')
    const [, about = ''] = /^\/\/ \d\d · ([^]*?)\n\/\/ Run it:/.exec(text) ?? []
    if (about === '') throw new Error(`${path} must begin with "// NN · what it shows" and "// Run it:".`)
    return `- [${name}](${path}): ${about.replaceAll('\n// ', ' ')}`
  })
  return lines.join('\n')
}
