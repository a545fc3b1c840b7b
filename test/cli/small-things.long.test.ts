// What a command says where there is nothing, where the place is odd, and what the commands it prints are called.
import { execFile } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { outputStyle } from '../../src/cli/present/print.ts'
import { Screen } from '../../src/cli/present/screen.ts'
import type { HarnessFolders } from '../../src/tools/files/harness-folders.ts'
import { stageOfEach } from './scripted.ts'
import { MAIN } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()
const run = promisify(execFile)
const REPOSITORY = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

describe('commands that are printed', () => {
  it('B-NAMES-3: name `npx terret` where npx found the program, and `terret` where it is installed', async () => {
    const modules = join(stage.folder, 'node_modules', '.bin')
    mkdirSync(modules, { recursive: true })
    symlinkSync(MAIN, join(modules, 'terret'))
    const local = await stage.start(['list'], { main: join(modules, 'terret') }).ended
    expect(local.err).toContain('`npx terret run TASK` starts one')
    const npx = await stage.start(['list'], { env: { npm_command: 'exec' } }).ended
    expect(npx.err).toContain('`npx terret run TASK` starts one')
    expect((await stage.terret('list')).err).toContain('`terret run TASK` starts one')
  })

  it('B-NAMES-4: `--data` and `--json` may stand before the command', async () => {
    const data = join(stage.home, 'apart')
    await stage.terret('run', '--model', 'offline:any', 'Here.', '--data', data)
    const { code, out } = await stage.terret('--data', data, 'list')
    expect([code, out]).toEqual([0, expect.stringContaining('Here.')])
    expect((await stage.terret(`--data=${data}`, '--json', 'list')).out).toContain('"task":"Here."')
    expect((await stage.terret('list')).out).toBe('')
    expect((await stage.terret('--data')).code).toBe(2)
  })

  it('B-NAMES-5: the commands in the README of the examples run after `npm init -y`', async () => {
    const readme = readFileSync(join(REPOSITORY, 'examples', 'README.md'), 'utf8')
    const [, from = '', to = ''] = /^cp node_modules\/terret\/examples\/(\S+) (\S+)$/m.exec(readme) ?? []
    expect(readme).toContain(`\nnode ${basename(to)}\n`)
    stage.write('work/package.json', JSON.stringify({ name: 'work', version: '1.0.0', type: 'commonjs' }))
    mkdirSync(join(stage.folder, 'node_modules'))
    symlinkSync(REPOSITORY, join(stage.folder, 'node_modules', 'terret'))
    symlinkSync(join(REPOSITORY, 'node_modules', 'zod'), join(stage.folder, 'node_modules', 'zod'))
    // As a version of Node.js that takes TypeScript runs it: .mts is a module, and .ts is what the package says.
    const file = join(stage.folder, to.replace(/\.(m?)ts$/, '.$1js'))
    copyFileSync(join(REPOSITORY, '.build', 'examples', from.replace(/\.ts$/, '.js')), file)
    const { stdout } = await run(process.execPath, [file], { cwd: stage.folder })
    expect(stdout).toContain('completed:')
  })
})

describe('where there is nothing', () => {
  it('B-SMALL-1: every command that lists says so in one plain line, and with --json prints nothing', async () => {
    const lists = ['list', 'list --all', 'pending', 'tasks', 'workflow runs', 'mcp list', 'trust --list', 'token list']
    for (const line of lists) {
      const { code, out, err } = await stage.terret(...line.split(' '))
      expect([line, code, out, err]).toEqual([
        line,
        0,
        '',
        expect.stringMatching(/^(No|Nothing|Nobody)[^\n]+\.?[^\n]*\n$/),
      ])
    }
    expect((await stage.terret('list')).err).toMatch(/^No sessions in this folder yet\./)
    for (const line of lists.slice(0, 4)) {
      const { out, err } = await stage.terret(...line.split(' '), '--json')
      expect([line, out, err]).toEqual([line, '', ''])
    }
  })

  it('B-SMALL-2: `tasks` lists those of this folder with their titles, and --all those of all folders', async () => {
    const other = join(dirname(stage.folder), 'other')
    mkdirSync(other)
    await stage.terret('run', '--model', 'offline:any', 'Sort the letters.')
    await stage.terretIn({ cwd: other }, 'run', '--model', 'offline:any', 'Count the stamps.')
    const here = (await stage.terret('tasks')).out
    expect(here).toContain('Sort the letters.')
    expect(here).not.toContain('Count the stamps.')
    expect((await stage.terret('tasks', '--all')).out).toMatch(/Count the stamps\.[\s\S]*Sort the letters\./)
    expect((await stage.json('tasks')) as object).toMatchObject({ what: 'Sort the letters.' })
  })
})

describe('odd places and words', () => {
  it('B-SMALL-3: an event that there is not is refused with the names there are', async () => {
    await stage.terret('run', '--model', 'offline:any', 'Hello.')
    const { code, out, err } = await stage.terret('history', 'latest', '--event', 'run.setled')
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain('Did you mean run.settled?')
    expect(err).toContain('user.message, user.tool_confirmation')
    expect((await stage.terret('history', 'latest', '--event', 'run.settled')).out).toContain('run.settled')
  })

  it('B-SMALL-4: an empty HOME is as none: nothing is kept in the folder one is in', async () => {
    const places = pathToFileURL(join(REPOSITORY, '.build', 'src', 'tools', 'files', 'harness-folders.js')).href
    const script = `import { harnessFolders } from '${places}'\nconsole.log(JSON.stringify(harnessFolders()))`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', script], { env: { HOME: '' } })
    const { data, config, all } = JSON.parse(stdout) as HarnessFolders
    for (const path of [data, config, ...all]) expect(path).toMatch(/^\/\S/)
  })

  it('B-SMALL-5: a working folder that was removed is said in one line', async () => {
    const gone = join(dirname(stage.folder), 'gone')
    mkdirSync(gone)
    const node = `"${process.execPath}" "${stage.command}"`
    const lines = `cd "${gone}" && rmdir "${gone}" && for c in "list" "run --model offline:any Hello." "doctor"; do ${node} $c; echo "code $?"; done`
    const { stdout, stderr } = await run('sh', ['-c', lines], { env: stage.env, cwd: stage.folder })
    expect(stdout).toBe('code 6\ncode 6\ncode 6\n')
    expect(stderr.trim().split('\n')).toEqual(
      Array(3).fill(expect.stringMatching(/^terret: The working folder was removed/)),
    )
  })

  it('B-SMALL-6: the model "offline" is offline:any, in the configuration and as a flag', async () => {
    stage.configure({ model: 'offline' })
    const { code, out } = await stage.terret('run', 'Hello.')
    expect([code, out]).toEqual([0, expect.stringContaining('offline')])
    stage.configure({})
    expect((await stage.terret('run', '--model', 'offline', 'Hello.')).code).toBe(0)
  })

  it('B-SMALL-20: init with the offline stand-in asks for no window', async () => {
    const { code, out } = await stage.terret('init', '--model', 'offline')
    expect([code, out]).toEqual([0, expect.not.stringContaining('windowTokens')])
  })

  it('B-SMALL-21: no command suggests a run where it would be refused', async () => {
    const data = join(stage.folder, 'd2')
    for (const args of [['list'], ['tasks'], ['inspect', 'latest'], ['init', '--model', 'offline']]) {
      const { out, err } = await stage.terret('--data', data, ...args)
      expect([args[0], `${out}${err}`]).toEqual([args[0], expect.stringContaining('lie in each other')])
      expect(`${out}${err}`).not.toContain('terret run')
    }
    expect((await stage.terret('list')).err).toContain('`terret run TASK` starts one')
  })

  it('B-SMALL-22: text that is not UTF-8 is told from binary data', async () => {
    const piped = (bytes: Buffer) => stage.start(['run', '-'], { stdin: bytes }).ended
    const latin = await piped(Buffer.from('Gr\u00fc\u00dfe aus K\u00f6ln\n', 'latin1'))
    expect([latin.code, latin.err]).toEqual([2, expect.stringContaining('not UTF-8 text')])
    expect(latin.err).toContain('iconv -f latin1 -t utf-8')
    expect(latin.err).not.toContain('binary')
    for (const bytes of [Buffer.from([0xff, 0, 1, 2]), Buffer.from([0xff, 1, 2, 3, 4])])
      expect((await piped(bytes)).err).toContain('Standard input is binary')
    expect((await piped(Buffer.from('\x1f\x8b\x08abc', 'latin1'))).err).toContain('Standard input is gzip')
  })

  it('B-SMALL-26: tasks calls a run of a person `agent`', async () => {
    stage.configure({ model: 'offline' })
    expect((await stage.terret('run', 'Hello.')).code).toBe(0)
    expect((await stage.terret('tasks')).out).toMatch(/ Completed +agent +default/)
    expect(await stage.json('tasks')).toMatchObject({ kind: 'agent', parent: null })
  })

  it('B-SMALL-7: tokens without a price are not shown as free', async () => {
    await scriptedBy(['Hello.'])
    await stage.terret('run', 'Say hello.')
    const { out } = await stage.terret('inspect', 'latest')
    expect(out).toMatch(/^Spent .* out, price unknown$/m)
    expect(out).not.toContain('$0.0000')
  })

  it('B-SMALL-8: a warning of the library is one plain line, without what Node.js writes before warnings', async () => {
    const script = stage.write(
      'warn.mjs',
      "process.once('beforeExit', () => process.emitWarning('memory: it is slow', 'TerretWarning'))\n",
    )
    const env = { NODE_OPTIONS: `--import=${script}` }
    const { err } = await stage.start(['run', '--model', 'offline:any', 'Hello.'], { env }).ended
    expect(err).toMatch(/^memory: it is slow$/m)
    expect(err).not.toContain('TerretWarning')
    expect(err).not.toContain('--trace-warnings')
  })

  it('B-SMALL-9: a terminal of 20 columns keeps its last column free, as every other does', () => {
    const out = Object.assign(Object.create(process.stdout) as NodeJS.WriteStream, {
      isTTY: true,
      columns: 20,
      rows: 10,
      hasColors: () => false,
    })
    expect(outputStyle(out).room.columns).toBe(19)
    expect(new Screen(out, { colours: false, input: () => ({ rows: [''], row: 0, column: 0 }) }).columns).toBe(19)
  })
})
