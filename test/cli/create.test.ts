// `terret create`: what it copies, what it refuses and what it says. npm and a full disk are create.long.test.ts; that each template works is
// test/package/templates.long.test.ts.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { VERSION } from '../../src/version.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()
const templates = join(import.meta.dirname, '..', '..', 'templates')
const names = readdirSync(templates)

type Manifest = {
  readonly name: string
  readonly description: string
  readonly scripts: Readonly<Record<string, string>>
  readonly dependencies: Readonly<Record<string, string>>
}
const manifestOf = (folder: string): Manifest => {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
}

describe('terret create', () => {
  it('B-CREATE-1: copies the template agent under the name that it is given, and prints what comes next', async () => {
    const { code, out } = await stage.terret('create', 'my-shop')
    const made = join(stage.folder, 'my-shop')
    expect(code).toBe(0)
    expect(out).toMatch(/^Made my-shop: an agent .*\n {2}cd my-shop\n {2}npm install\n {2}npm test\n {2}npm start\n$/)
    expect(manifestOf(made)).toMatchObject({ name: 'my-shop', dependencies: { terret: `^${VERSION}` } })
    expect(readdirSync(made)).toEqual(expect.arrayContaining(['.gitignore', 'README.md', 'src', 'test']))
    expect(existsSync(join(made, 'gitignore'))).toBe(false)
    expect(existsSync(join(made, 'node_modules'))).toBe(false)
  })

  it.each(names)('B-CREATE-1: gives the template %s as JSON too', async (template) => {
    expect(await stage.json('create', 'shop', '--template', template)).toEqual({
      folder: join(stage.folder, 'shop'),
      template,
      next: expect.arrayContaining(['cd shop', 'npm install', 'npm test']) as unknown,
    })
  })

  it('B-CREATE-2: leaves a folder that is not empty as it is, and uses one that is', async () => {
    mkdirSync(join(stage.folder, 'shop'))
    expect((await stage.terret('create', 'shop')).code).toBe(0)
    const { code, err } = await stage.terret('create', 'shop')
    expect({ code, err }).toEqual({
      code: 2,
      err: 'terret: The folder shop is not empty, and was left as it is. Choose another name.\n',
    })
    writeFileSync(join(stage.folder, 'notes'), 'mine')
    expect((await stage.terret('create', 'notes')).err).toBe(
      'terret: notes is a file. Choose another name, or move it away.\n',
    )
    expect(readFileSync(join(stage.folder, 'notes'), 'utf8')).toBe('mine')
  })

  it.each(['My Shop', '../shop', '/tmp/shop', '.shop', '', 'shop\u001b[2J', 'terret', 'node_modules', 'a'.repeat(65)])(
    'B-CREATE-2: refuses the name %j and makes nothing',
    async (name) => {
      const { code, err } = await stage.terret('create', name)
      expect({ code, err }).toMatchObject({ code: 2, err: expect.stringMatching(/^terret: "[^\n]*\n$/) as string })
      expect(err).not.toContain('\u001b')
      expect(readdirSync(stage.folder)).toEqual([])
    },
  )

  it.each([
    ['agnet', 'Did you mean agent?'],
    ['express', `There are: ${names.join(', ')}.`],
    ['../src', `There are: ${names.join(', ')}.`],
  ])('B-CREATE-3: refuses the template %s: %s', async (template, hint) => {
    const { code, err } = await stage.terret('create', 'shop', '--template', template)
    expect({ code, err }).toEqual({ code: 2, err: `terret: There is no template "${template}". ${hint}\n` })
    expect(readdirSync(stage.folder)).toEqual([])
  })

  it.each(names)('B-CREATE-4: the template %s has tests, a program, and says what to change first', (template) => {
    const folder = join(templates, template)
    const { description, scripts, dependencies } = manifestOf(folder)
    expect(scripts['test']).toBeDefined()
    expect(scripts['start'] ?? scripts['dev']).toBeDefined()
    expect(dependencies['terret']).toBe('*')
    expect(description).not.toMatch(/[.A-Z]$|^[A-Z]/)
    expect(readFileSync(join(folder, 'README.md'), 'utf8')).toMatch(/^# [^]+\nnpm test[^]+\n## What to change first\n/)
    expect(readdirSync(folder)).toContain('gitignore')
  })
})
