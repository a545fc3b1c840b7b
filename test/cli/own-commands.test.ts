// Slash commands from files: which files are commands, and how their text is filled.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { fillCommand, readOwnCommands } from '../../src/cli/state/own-commands.ts'
import type { Home } from '../../src/cli/state/cli-home.ts'

function place(files: Readonly<Record<string, string>>) {
  const root = mkdtempSync(join(tmpdir(), 'terret-own-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
  // Only the configuration folder is read.
  const home = { config: join(root, 'config') } as Home
  return { root, setup: { home, folder: join(root, 'work'), trusted: true } }
}

it('B-CLI-381: a description is the help, else the first line; a command of the folder comes before one of the user', async () => {
  const { setup } = place({
    'config/commands/review.md': '---\ndescription: Review the diff\n---\nReview $ARGUMENTS.\n',
    'config/commands/both.md': 'The one of the user.',
    'work/.terret/commands/both.md': 'The one of the folder.\nMore.',
  })
  const { commands, notes } = await readOwnCommands(setup, ['help'])
  expect(notes).toEqual([])
  expect(commands).toEqual([
    { name: 'both', says: 'The one of the folder.', text: 'The one of the folder.\nMore.' },
    { name: 'review', says: 'Review the diff', text: 'Review $ARGUMENTS.' },
  ])
})

it('B-CLI-382: a file that is no command is refused in one line, and the others work', async () => {
  const { root, setup } = place({
    'work/.terret/commands/help.md': 'Mine.',
    'work/.terret/commands/Bad Name.md': 'x',
    'work/.terret/commands/empty.md': ' \n',
    'work/.terret/commands/open.md': '---\ndescription: x\n',
    'work/.terret/commands/broken.md': '---\n: [\n---\nx',
    'work/.terret/commands/good.md': 'Good.',
    'secret.md': 'secret',
  })
  symlinkSync(join(root, 'secret.md'), join(root, 'work/.terret/commands/link.md'))
  const { commands, notes } = await readOwnCommands(setup, ['help'])
  expect(commands.map(({ name }) => name)).toEqual(['good'])
  expect(notes).toHaveLength(6)
  expect(notes.join('\n')).toContain('/help is a command of the chat. Give it another name.')
  for (const note of notes) expect(note).not.toContain('\n')
  expect(notes.join('\n')).not.toContain('secret\n')
  expect((await readOwnCommands({ ...setup, trusted: false }, [])).commands).toEqual([])
})

it('B-CLI-381: what was entered fills the places once, or stands at the end', () => {
  const fill = (text: string, given: string): string => fillCommand({ name: 'x', says: '', text }, given)
  expect(fill('Fix $1 in $2: $ARGUMENTS', 'a b c')).toBe('Fix a in b: a b c')
  expect(fill('Fix $1.', '$ARGUMENTS $&')).toBe('Fix $ARGUMENTS.')
  expect(fill('Cost $10, $3.', 'a')).toBe('Cost $10, .')
  expect(fill('Review.', 'the diff')).toBe('Review.\n\nthe diff')
  expect(fill('Review.', '')).toBe('Review.')
})
