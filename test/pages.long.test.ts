// The programs of the pages for newcomers run as they stand there, from the packed package, and print what the page says.
// A program is a block that begins with its name; what it prints stands below `$ node NAME`, in blocks of text.
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { root, unpackAlone } from './package/packed.ts'

it.each(['concepts', 'when-a-process-dies', 'testing'])(
  'B-DOC-1: the programs of the guide %s run as written, and print what the page says',
  (name) => {
    const page = readFileSync(join(root, 'docs', 'guide', `${name}.md`), 'utf8')
    const folder = unpackAlone(['zod', '@photostructure/sqlite'])
    for (const [, code = '', file = ''] of page.matchAll(/```ts\n(\/\/ (\S+\.mjs)\n[\s\S]*?)```/g))
      writeFileSync(join(folder, file), code)
    const shown = [...page.matchAll(/```text\n(\$ node [\s\S]*?)```/g)].map(([, text = '']) => text)
    expect(shown.length).toBeGreaterThan(0)
    for (const text of shown) {
      const starts = [...text.matchAll(/^\$ (node .*)$/gm)].map(([, command = '']) => command)
      const printed = starts.map((command) => `$ ${command}\n${printedBy(command, folder)}`).join('')
      expect(withRanks(printed)).toBe(withRanks(text))
    }
  },
)

function printedBy(command: string, folder: string): string {
  const [, ...args] = command.split(' ')
  const { signal, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: folder,
    encoding: 'utf8',
    timeout: 60_000,
  })
  return `${stdout}${stderr}${signal === 'SIGKILL' ? 'Killed\n' : ''}`
}

/** Numbers of leases grow, but a slow machine may use another one up: the first becomes 1, the next 2. */
function withRanks(log: string): string {
  const seen: string[] = []
  return log.replace(/^( ?\d+ {2})(\d+)(?= {2})/gm, (_, place: string, epoch: string) => {
    if (!seen.includes(epoch)) seen.push(epoch)
    return `${place}${seen.indexOf(epoch) + 1}`
  })
}
