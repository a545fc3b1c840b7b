// Which store a command works on: the variable, the configuration or the data folder; and what is said of addresses that are wrong.
import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { findHome } from '../../src/cli/state/cli-home.ts'
import { passwordIn, findStore, parseStore, storeSecrets } from '../../src/cli/state/store-location.ts'
import { readSetup } from '../../src/cli/state/folder-setup.ts'
import { stageOfEach } from './scripted.ts'

const { stage } = stageOfEach()

const home = findHome({ HOME: '/home/me' }, 'linux')
const named = (text: string) => parseStore(home, text, { what: 'TERRET_STORE' })
const beside = (name: string): string => join(stage.folder, '..', name)
const run = (env: Readonly<Record<string, string>>, task: string) =>
  stage.terretIn({ env }, 'run', '--model', 'offline:any', '--quiet', task)

describe('the name of a store', () => {
  it.each([
    ['postgres://me:s3cret@db.example:5432/terret', 'postgres://me@db.example:5432/terret', 's3cret'],
    ['postgresql://me:s3cret@db/terret?sslmode=require', 'postgres://me@db/terret', 's3cret'],
    ['postgres://me:a@b:c@db/terret', 'postgres://me@db/terret', 'a@b:c'],
    ['postgres://db/terret?password=s3cret&x=1', 'postgres://db/terret', 's3cret'],
    ['postgres://me@one:1,two:2/terret', 'postgres://me@one:1,two:2/terret', null],
    ['postgres:///terret?host=/run/postgresql', 'postgres:///terret', null],
  ])('B-CLISTORE-1: %s is shown without its password', (text, shown, password) => {
    const place = named(text)
    expect([place.shown, place.type === 'postgres' && passwordIn(place)]).toEqual([shown, password])
    expect(place.type === 'postgres' && place.url).toBe(text)
  })

  it.each([
    ['', 'is empty. Set it to postgres://USER@HOST/DATABASE, or the path of a file.'],
    ['  ', 'is empty. '],
    ['postgre://me:s3cret@db/x', 'begins with "postgre:", which no store has. Did you mean postgres://?'],
    ['mysql://me:s3cret@db/x', 'begins with "mysql:", which no store has. A store is postgres://'],
    ['postgres:me:s3cret', 'must begin with postgres://'],
    ['postgres://me:s3cret@db', 'names no database. Write postgres://USER@HOST/DATABASE'],
    ['postgres://me:s3cret@db/', 'names no database. '],
    ['postgres://', 'names no database. '],
    ['postgres://me:s3c/ret@db/x', 'has a /, ?, # or space before its "@". '],
    ['postgres://me:s3c#ret@db/x', 'has a /, ?, # or space before its "@". '],
    ['postgres://db/x?password=s3c@ret', 'has a /, ?, # or space before its "@". '],
    ['postgres://me:s3cret@db/x/y', 'cannot be read. '],
    ['//me:s3cret@db/x', 'is no path of a file, and does not begin with postgres://'],
    ['u:s3cret@db/x', 'is no path of a file, and does not begin with postgres://'],
    ['sessions.db', 'is not an absolute path. '],
  ])('B-CLISTORE-2: "%s" is refused in one sentence without what may be a password', (text, said) => {
    expect(() => named(text)).toThrow(said)
    expect(() => named(text)).not.toThrow(/s3c|ret/)
  })

  it('B-CLISTORE-3: what is redacted from logs has the password as it is written and as it is sent', () => {
    stage.configure({ store: 'postgres://me:p%40ssw0rd-long@db/x' })
    chmodSync(join(stage.config, 'config.json'), 0o600)
    const own = { ...home, config: stage.config }
    expect(storeSecrets(own)).toEqual({
      TERRET_STORE_PASSWORD: 'p@ssw0rd-long',
      TERRET_STORE_PASSWORD_ENCODED: 'p%40ssw0rd-long',
    })
  })
})

/** The port of a server that says to everybody, in the words of a database, that the password is wrong. */
async function refusing(): Promise<number> {
  const fields = Buffer.from('SFATAL\0C28P01\0Mpassword authentication failed\0\0')
  const head = Buffer.from([0x45, 0, 0, 0, fields.length + 4])
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(Buffer.concat([head, fields])))
  })
  onTestFinished(() => void server.close())
  await new Promise<void>((done) => void server.listen(0, '127.0.0.1', done))
  const address = server.address()
  return typeof address === 'object' && address ? address.port : 0
}

describe('the store of a command', () => {
  it('B-CLISTORE-4: is the file of TERRET_STORE, else of the configuration, else of the data folder; --data names its own', async () => {
    const [one, two] = [beside('one.db'), beside('two.db')]
    stage.configure({ store: one })
    expect((await run({}, 'In one.')).code).toBe(0)
    expect((await run({ TERRET_STORE: two }, 'In two.')).code).toBe(0)
    expect(existsSync(join(stage.home, 'terret.db'))).toBe(false)
    const tasks = async (
      env: Readonly<Record<string, string>>,
      ...more: readonly string[]
    ): Promise<readonly string[]> => {
      const { out } = await stage.terretIn({ env }, 'list', '--json', ...more)
      return out === ''
        ? []
        : out
            .trim()
            .split('\n')
            .map((line) => (JSON.parse(line) as { task: string }).task)
    }
    expect(await tasks({})).toEqual(['In one.'])
    expect(await tasks({ TERRET_STORE: two })).toEqual(['In two.'])
    expect(await tasks({ TERRET_STORE: two }, '--data', beside('third'))).toEqual([])
    const { out } = await stage.terretIn({ env: { TERRET_STORE: two } }, 'doctor', '--model', 'offline:any')
    expect(out).toMatch(new RegExp(`^store +ok +${two}, 1 sessions$`, 'm'))
  })

  it('B-CLISTORE-5: a file elsewhere that is gone is noticed as the one of the data folder is', async () => {
    const env = { TERRET_STORE: beside('one.db') }
    await stage.start(['run', '--model', 'offline:any', 'One.'], { env }).ended
    for (const name of readdirSync(beside('')).filter((each) => each.startsWith('one.db'))) rmSync(beside(name))
    const { code, err } = await run(env, 'Two.')
    expect([code, err]).toEqual([8, expect.stringContaining(`${env.TERRET_STORE} is gone, and with it every session.`)])
    expect((await stage.terretIn({ env }, 'doctor', '--accept-store')).code).toBe(0)
    expect((await run(env, 'Two.')).code).toBe(0)
  })

  it('B-CLISTORE-6: a workspace cannot choose it, trusted or not, and an agent does not work where the file is', async () => {
    stage.write('work/.terret/config.json', JSON.stringify({ store: beside('theirs.db') }))
    expect((await run({}, 'Untrusted.')).code).toBe(0)
    await stage.terret('trust')
    const { code, err } = await run({}, 'Trusted.')
    expect([code, err]).toEqual([7, expect.stringContaining('"store" is not for a workspace to choose.')])
    expect(existsSync(beside('theirs.db'))).toBe(false)
    rmSync(join(stage.folder, '.terret'), { recursive: true })
    const inside = await run({ TERRET_STORE: join(stage.folder, 'sessions.db') }, 'Inside.')
    expect([inside.code, inside.err]).toEqual([
      7,
      expect.stringMatching(/The store \S+ lies in \S+\. Keep it where no agent works\./),
    ])
  })

  it('B-CLISTORE-7: a password in a configuration that others can read is refused, and no output has one', async () => {
    const url = `postgres://me:s3cret-s3cret@127.0.0.1:${await refusing()}/terret`
    stage.configure({ store: url })
    chmodSync(join(stage.config, 'config.json'), 0o644)
    const open = await stage.terret('list')
    expect([open.code, open.err]).toEqual([
      7,
      expect.stringMatching(/^terret: Other users can read the password in \S+config\.json\. [^\n]+chmod 600 \S+\n$/),
    ])
    chmodSync(join(stage.config, 'config.json'), 0o600)
    for (const args of [
      ['list'],
      ['run', '--model', 'offline:any', 'One.'],
      ['worker', '--idle'],
      ['doctor', '--model', 'offline:any'],
      ['doctor', '--accept-store'],
      ['doctor', '--session', 'x'],
      ['store', 'check'],
      ['store', 'move', '--to', beside('to.db')],
      ['store', 'move', '--store', beside('none.db'), '--to', url],
      ['tools', '--json'],
    ]) {
      const { code, out, err } = await stage.terret(...args)
      expect([args, `${out}${err}`]).toEqual([args, expect.not.stringContaining('s3cret')])
      // These two ask no database.
      if (args[0] !== 'tools' && args[1] !== '--accept-store') expect([args, code]).not.toEqual([args, 0])
    }
  })

  it('B-CLISTORE-41: without the package pg, a store in a database is refused in one sentence', async () => {
    const missing = `export async function resolve(name, context, next) {
      if (name !== 'pg') return next(name, context)
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' })
    }`
    const without = stage.write('without.mjs', missing)
    const hooks = stage.write(
      'hooks.mjs',
      `import { register } from 'node:module'\nregister(${JSON.stringify(`file://${without}`)})`,
    )
    const env = { TERRET_STORE: 'postgres://me@127.0.0.1:1/x', NODE_OPTIONS: `--import file://${hooks}` }
    const { code, err } = await stage.start(['list'], { env }).ended
    const said = 'terret: A store in Postgres needs a package of its own. Run: npm install pg (invalid_config)\n'
    expect([code, err]).toEqual([7, said])
  })

  it('B-CLISTORE-8: the setup of a folder knows the password, so that logs do not', async () => {
    stage.configure({})
    mkdirSync(beside('elsewhere'))
    process.env['TERRET_STORE'] = 'postgres://me:s3cret-s3cret@db/x'
    try {
      const own = findHome({ ...stage.env }, 'linux')
      expect(findStore(own).shown).toBe('postgres://me@db/x')
      const { env } = await readSetup(own, beside('elsewhere'))
      expect(env['TERRET_STORE_PASSWORD']).toBe('s3cret-s3cret')
    } finally {
      delete process.env['TERRET_STORE']
    }
  })
})
