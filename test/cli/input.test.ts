// Wrong input: each case gives a line that says what to do, an exit code from the table, and loses nothing.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { EXIT_TEXT } from '../../src/cli/exit.ts'
import { TABLE } from '../../src/cli/table.ts'
import { findSandbox } from '../../src/tools/shell/sandbox.ts'
import { stageOfEach } from './scripted.ts'
import { lastLine } from './stage.ts'

const { scriptedBy, stage } = stageOfEach()

describe('the command line', () => {
  it.each([
    ['frob', 'There is no command "frob". Run `terret --help` to see what there is.'],
    ['aprove x', 'There is no command "aprove". Did you mean `terret approve`?'],
    ['--frob', 'There is no flag --frob. Run `terret --help` to see what there is.'],
    ['run --modle x y', '`terret run` has no flag --modle. Did you mean --model?'],
    ['run --frobnicate', '`terret run` has no flag --frobnicate. Run `terret run --help` to see what there is.'],
    ['run', 'The task is missing. Usage: terret run TASK, or terret run - to read it from standard input'],
    ['inspect', 'Wrong number of arguments. Usage: terret inspect ID'],
    ['inspect a b', 'Wrong number of arguments. Usage: terret inspect ID'],
    ['list --limit 0', '--limit must be a whole number from 1 on, not "0".'],
    ['list --status odd', '--status must be one of: idle, running, rescheduling, requires_action, terminated.'],
    ['policy frob', 'Unknown subcommand. Usage: terret policy test TOOL JSON, or: terret policy forget N'],
    ['prune --older -1', 'The value of --older begins with "-". Write such a value as --NAME=VALUE.'],
    ['prune --older=-1', '--older must be a whole number from 0 on, not "-1".'],
    ['policy test write {}', 'Invalid arguments for write: path: required; content: required.'],
    ['completion tcsh', 'There is no completion for "tcsh". Choose one of: bash, zsh, fish.'],
    ['help frob', 'There is no command "frob". Run `terret --help` to see what there is.'],
  ])('B-CLI-70: `terret %s` is refused in one line, with exit code 2', async (line, text) => {
    const { code, out, err } = await stage.refused(...line.split(' '))
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: `terret: ${text}\n` })
    expect(existsSync(stage.home)).toBe(false)
  })

  it('B-CLI-71: help lists every command with what it does, and all exit codes; --help of a command its flags', async () => {
    const { code, out } = await stage.terret('--help')
    expect(code).toBe(0)
    for (const [name, { says }] of Object.entries(TABLE))
      expect(out).toMatch(new RegExp(`^ {2}${name}\\b[^]*?${says.slice(0, 20)}`, 'm'))
    for (const text of Object.values(EXIT_TEXT)) expect(out).toContain(text)
    expect((await stage.terret()).out).toBe(out)
    expect((await stage.terret('run', '--help')).out).toBe((await stage.terret('help', 'run')).out)
    expect((await stage.terret('run', '-h')).out).toContain('--on-ask WHAT')
  })

  it('B-CLI-72: the guide has the same commands and the same exit codes', () => {
    const guide = readFileSync(new URL('../../docs/guide/cli.md', import.meta.url), 'utf8')
    for (const name of Object.keys(TABLE)) expect(guide).toContain(`\`${name}`)
    for (const [code, text] of Object.entries(EXIT_TEXT)) expect(guide).toContain(`| ${code} | ${text} |`)
  })

  it.each(['bash', 'zsh', 'fish'])('B-CLI-73: completion for %s names every command and its flags', async (shell) => {
    const { code, out } = await stage.terret('completion', shell)
    expect(code).toBe(0)
    for (const name of Object.keys(TABLE)) expect(out).toContain(name)
    expect(out).toContain('on-ask')
  })

  it('B-CLI-2: also version and completion give JSON', async () => {
    const version = (await stage.terret('version')).out.trim()
    for (const name of ['version', '--version']) expect(await stage.json(name)).toEqual({ version })
    const script = (await stage.terret('completion', 'bash')).out.trimEnd()
    expect(await stage.json('completion', 'bash')).toEqual({ shell: 'bash', script })
  })
})

describe('configuration', () => {
  it.each([
    ['{"model": ', /config\.json is not valid JSON: Unexpected end of JSON input in line 1\. Correct it\.$/],
    ['{\n"a": 1,\n}', /config\.json is not valid JSON: .* in line 3\. Correct it\.$/],
    ['{"a": "s3cret",\n"b": s3cret}', /config\.json is not valid JSON: Unexpected token 's' in line 2\. Correct it\.$/],
    ['[]', /config\.json must hold one JSON object\. Correct it\.$/],
    ['{"modle": "a:b"}', /config\.json: "modle" is not known\. Did you mean "model"\?$/],
    ['{"model": 5}', /config\.json: "model" must be a list of texts\.$/],
    ['{"mode": "yolo"}', /config\.json: "mode" must be plan, ask or auto\.$/],
    ['{"limits": {"toolCals": 1}}', /config\.json: "limits\.toolCals" is not known\. Did you mean "toolCalls"\?$/],
    ['{"limits": {"toolCalls": -1}}', /config\.json: "limits\.toolCalls" must be a whole number from 0 on\.$/],
    ['{"budget": {"runUsd": "much"}}', /config\.json: "budget\.runUsd" must be a number of dollars from 0 on\.$/],
    ['{"mcp": {"a": {}}}', /config\.json: "mcp\.a" needs a command or a url\.$/],
    ['{"endpoints": {"a": {"baseUrl": "ftp://a"}}}', /config\.json: "endpoints\.a\.baseUrl" must be an address/],
    ['{"bash": {"risk": "none"}}', /config\.json: "bash\.risk" must be strict or relaxed\.$/],
    ['{"tools": ["read", "raed"]}', /"raed" is no built-in tool\. Known are: .*\(invalid_config\)$/],
    [
      '{"skills": "missing"}',
      /The folder .*missing is not there\. Create it, or name another one\. \(invalid_config\)$/,
    ],
    [
      '{"approvals": {"policy": "missing.json"}}',
      /There is no policy file .*missing\.json\. Correct "approvals\.policy" in the configuration, or create the file\.$/,
    ],
    ['{"model": "nobody:x"}', /There is no provider "nobody"\. .*\(invalid_config\)$/],
  ])('B-CLI-74: %s is refused with the file and the field, and exit code 7', async (text, message) => {
    stage.write('config/terret/config.json', text)
    const model = text.includes('nobody') ? [] : ['--model', 'offline:any']
    const { code, err } = await stage.refused('run', ...model, 'x')
    expect([code, lastLine(err)]).toEqual([7, expect.stringMatching(message)])
    expect(err).not.toContain('s3cret')
  })

  it.each([
    ['policy', 'approvals.policy'],
    ['environment', 'approvals.environment'],
    ['prefix', 'context.prefix'],
    ['compaction', 'context.compaction'],
    ['compression', 'results.compression'],
    ['routes', 'models.routes'],
  ])('B-CLI-303: the field "%s" beside its group is refused with its place, "%s"', async (field, place) => {
    stage.configure({ [field]: 'x' })
    const { code, err } = await stage.refused('run', 'x')
    expect([code, lastLine(err)]).toEqual([
      7,
      expect.stringContaining(`"${field}" is not known. Write it as "${place}".`),
    ])
  })

  it('B-CLI-74: a command that only reads needs the configuration too, as it names the store: it says the same in one line', async () => {
    stage.write('config/terret/config.json', '{\n  "store": "/tmp/x",\n}')
    const { code, out, err } = await stage.refused('list')
    expect([code, out]).toEqual([7, ''])
    expect(err).toMatch(/^terret: \S+config\.json is not valid JSON: [^\n]+ in line 3\. Correct it\.\n$/)
  })

  it.each(['', ' \n'])(
    'B-CLI-75: an empty configuration (%j) is refused with what to do, by init too',
    async (text) => {
      const file = stage.write('config/terret/config.json', text)
      const err = `terret: ${file} is empty: remove it, or write {} into it.\n`
      for (const args of [['list'], ['run', 'x'], ['init'], ['init', '--model', 'offline:any']])
        expect(await stage.refused(...args)).toEqual({ code: 7, out: '', err })
      rmSync(file)
      expect((await stage.terret('init', '--model', 'offline:any')).code).toBe(0)
    },
  )

  it('B-CLI-164: skills of the configuration are offered, unless it names the tools', async () => {
    stage.write('config/terret/skills/greet/SKILL.md', '---\nname: greet\ndescription: Greets.\n---\nSay hello.\n')
    stage.configure({ model: 'offline:any', skills: 'skills' })
    expect((await stage.terret('policy', 'test', 'skill_read', '{"name":"greet"}')).code).toBe(0)
    expect((await stage.terret('policy')).out).toMatch(/^Tools .*, skill_read, skill_run, /m)
    stage.configure({ model: 'offline:any', skills: 'skills', tools: ['read'] })
    expect((await stage.terret('policy')).out).toMatch(/^Tools {5}read, (?!.*skill_)/m)
  })

  it('B-WINDOW-5: init writes the window that is given, and says what to set where nobody knows it', async () => {
    const unknown = await stage.terret('init', '--model', 'lmstudio:mine')
    expect(unknown.out).toContain(
      'How many tokens lmstudio:mine takes is not known: set "context.compaction.windowTokens"',
    )
    const file = join(stage.config, 'config.json')
    expect(JSON.parse(readFileSync(file, 'utf8'))).not.toHaveProperty('compaction')
    expect((await stage.terret('init', '--window', '32000')).code).toBe(7)
    rmSync(file)
    for (const wrong of ['0', 'many', '-5']) {
      expect((await stage.terret('init', '--model', 'lmstudio:mine', `--window=${wrong}`)).code).toBe(2)
      expect(existsSync(file)).toBe(false)
    }
    expect((await stage.terret('init', '--model', 'lmstudio:mine', '--window', '32000')).out).not.toContain('not known')
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ context: { compaction: { windowTokens: 32_000 } } })
    rmSync(file)
    for (const known of ['ollama:qwen3', 'gemini:gemini-2.5-pro', 'offline:any']) {
      expect((await stage.terret('init', '--model', known)).out).not.toContain('not known')
      rmSync(file)
    }
  })

  it('B-CLI-75: init writes a configuration once, private, and says where the key goes', async () => {
    const { code, out } = await stage.terret('init', '--model', 'openai:gpt-5.1')
    expect(code).toBe(0)
    expect(out).toContain(`into ${stage.config}/.env: OPENAI_API_KEY=…`)
    expect(JSON.parse(readFileSync(join(stage.config, 'config.json'), 'utf8'))).toMatchObject({
      model: 'openai:gpt-5.1',
    })
    expect(await stage.json('init')).toMatchObject({ made: false })
    expect((await stage.terret('init', '--model', 'openai:other')).code).toBe(7)
    expect(readFileSync(join(stage.config, 'config.json'), 'utf8')).toContain('gpt-5.1')
  })

  it('B-CLI-76: mcp add, list and remove change only the servers; values of variables are never written', async () => {
    stage.configure({ model: 'offline:any' })
    const add = ['mcp', 'add', 'files', '--unchecked', '--env', 'MY_TOKEN', '--', 'node', 'server.mjs', '--root', '.']
    expect((await stage.terretIn({ env: { MY_TOKEN: 'a-secret-value' } }, ...add)).code).toBe(0)
    const web = ['web', '--unchecked', '--url', 'https://mcp.example/x', '--header', 'authorization=MY_TOKEN']
    await stage.terret('mcp', 'add', ...web)
    const text = readFileSync(join(stage.config, 'config.json'), 'utf8')
    expect(JSON.parse(text)).toEqual({
      model: 'offline:any',
      mcp: {
        files: { command: 'node', args: ['server.mjs', '--root', '.'], env: { MY_TOKEN: '${MY_TOKEN}' } },
        web: { url: 'https://mcp.example/x', headers: { authorization: '${MY_TOKEN}' } },
      },
    })
    expect((await stage.terret('mcp', 'list')).out).toContain('web  https://mcp.example/x')
    expect((await stage.terret('mcp', 'add', 'web', '--', 'node')).code).toBe(9)
    expect((await stage.terret('mcp', 'add', 'odd', '--url', 'ftp://x')).code).toBe(7)
    expect((await stage.terret('mcp', 'remove', 'web')).code).toBe(0)
    expect((await stage.terret('mcp', 'remove', 'web')).code).toBe(6)
    const ran = await stage.terret('run', 'x')
    expect([ran.code, ran.err]).toEqual([0, expect.stringContaining('needs the variable MY_TOKEN')])
  })
})

describe('places', () => {
  it('B-CLI-83: a folder of other things that is named as the home is refused, and stays as it is', async () => {
    stage.write('shared/a.txt', '')
    const shared = join(stage.folder, '..', 'shared')
    chmodSync(shared, 0o755)
    const { code, err } = await stage.terretIn({ env: { TERRET_HOME: shared } }, 'list', '--all')
    expect([code, err.includes('Set TERRET_HOME')]).toEqual([0, false])
    const run = await stage.terretIn({ env: { TERRET_HOME: shared } }, 'run', '--model', 'offline:any', 'x')
    expect([run.code, run.err]).toEqual([8, expect.stringContaining('Set TERRET_HOME to a folder of its own.')])
    expect(statSync(shared).mode & 0o777).toBe(0o755)
  })

  it('B-CLI-78: a data folder that cannot be made or used is said in one line, with exit code 8', async () => {
    const file = stage.write('file', '')
    for (const home of [join(file, 'home'), '/proc/terret']) {
      const { code, err } = await stage.terretIn({ env: { TERRET_HOME: home } }, 'run', '--model', 'offline:any', 'x')
      expect([code, err]).toEqual([
        8,
        expect.stringMatching(
          /^terret: The data folder \S+ cannot be used \(E\w+\)\. Make it writable, or set TERRET_HOME to another folder\.\n$/,
        ),
      ])
    }
    const relative = await stage.terretIn({ env: { TERRET_HOME: 'here' } }, 'list')
    expect([relative.code, relative.err]).toEqual([7, expect.stringContaining('which is not an absolute path')])
  })

  it('B-CLI-79: a damaged database is said, and left as it is', async () => {
    await stage.terret('run', '--model', 'offline:any', 'x')
    stage.write('data/terret.db', 'this is no database')
    stage.write('data/terret.db-wal', '')
    const { code, err } = await stage.terret('list', '--all')
    expect([code, err.split('\n')]).toEqual([8, [expect.stringMatching(/^terret: .*\(store_damaged\)$/), '']])
    expect(readFileSync(join(stage.home, 'terret.db'), 'utf8')).toBe('this is no database')
  })

  it('B-CLI-80: a closed pipe, as head leaves it, ends the command quietly', async () => {
    await stage.terret('run', '--model', 'offline:any', 'x')
    const history = stage.start(['history', 'latest', '--json'])
    history.child.stdout?.destroy()
    const { err } = await history.ended
    expect(err).toBe('')
  })
})

/** With what a shell can do to a command: `terret` is its name there. */
function shell(script: string): { readonly code: number | null; readonly out: string; readonly err: string } {
  const named = `terret() { '${process.execPath}' '${stage.command}' "$@"; }`
  const { status, stdout, stderr } = spawnSync('/bin/bash', ['-c', `${named}\n${script}`], {
    cwd: stage.folder,
    env: stage.env,
    encoding: 'utf8',
  })
  return { code: status, out: stdout, err: stderr }
}

describe('what cannot be written', () => {
  it.skipIf(!existsSync('/dev/full'))(
    'B-CLI-161: a lost answer is reported, and a run without a reader goes on to its end',
    async () => {
      expect((await stage.terret('run', '--model', 'offline:any', 'x')).code).toBe(0)
      expect(shell('terret export latest > /dev/full')).toEqual({
        code: 8,
        out: '',
        err: 'terret: The output could not be written (ENOSPC), so it is incomplete. Free space, or write to another place.\n',
      })
      shell('terret run --trust --model offline:any list the files 2>&1 | head -0')
      expect(await stage.json('inspect', 'latest')).toMatchObject({ outcome: 'completed', status: 'idle' })
      expect(shell('terret run --model offline:any x 2>/dev/full')).toMatchObject({ code: 0, err: '' })
    },
  )

  it('B-CLI-162: an export that cannot be written whole leaves nothing behind', async () => {
    await stage.terret('run', '--model', 'offline:any', 'x '.repeat(50_000))
    for (const format of ['jsonl', 'folder']) {
      // 64 KB is less than the log, and more than what opening the store writes.
      const { code, err } = shell(`ulimit -f 64; terret export latest --format ${format} --out there`)
      expect([code, err]).toEqual([2, expect.stringMatching(/^terret: \S+ cannot be written \(EFBIG\)\./)])
      expect(existsSync(join(stage.folder, 'there'))).toBe(false)
    }
    expect((await stage.terret('export', 'latest', '--out', 'there')).code).toBe(0)
  })

  it('B-CLI-78: a data folder that is full is said in one line, with exit code 8, and nothing half-written stays', () => {
    mkdirSync(stage.home, { mode: 0o700 })
    const { code, err } = shell('ulimit -f 0; terret trust')
    expect([code, err]).toEqual([8, expect.stringMatching(/^terret: The data folder \S+ cannot be used \(EFBIG\)\./)])
    expect(readdirSync(stage.home)).toEqual([])
  })
})

describe('terret doctor', () => {
  it('B-CLI-81: checks the store, the sandbox, ripgrep and each model; ok and mock are exit code 0', async () => {
    await scriptedBy([
      'ok',
      { status: 'unauthorized' },
      { status: 404, body: { error: { message: 'The model `m` does not exist', code: 'model_not_found' } } },
    ])
    const states = (out: string) =>
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { what: string; status: string })
    const first = await stage.terret('doctor', '--json', '--model', 'fake:m', '--model', 'offline:any')
    expect(first.code).toBe(0)
    expect(states(first.out)).toMatchObject([
      { what: 'store', status: 'ok' },
      { what: 'sandbox' },
      { what: 'ripgrep', status: 'ok' },
      { what: 'model fake:m', status: 'ok' },
      { what: 'model offline:any', status: 'mock' },
    ])
    const second = await stage.terret('doctor', '--json')
    expect([second.code, states(second.out).at(-1)?.status]).toEqual([1, 'misconfigured'])
    const third = await stage.terret('doctor', '--json')
    expect([third.code, states(third.out).at(-1)?.status]).toEqual([1, 'model_missing'])
    expect(lastLine((await stage.terret('doctor', '--model', 'openai:x')).out)).toMatch(
      /misconfigured +There is no key for openai/,
    )
  })

  it.skipIf(findSandbox('/tmp').type === 'none')(
    'B-CLI-81: a sandbox whose walls do not hold is a failure',
    async () => {
      // Without its programs the probe cannot show that it is apart.
      const { code, out } = await stage.start(['doctor', '--model', 'offline:any'], { env: { PATH: '/nowhere' } }).ended
      expect([code, out]).toEqual([1, expect.stringMatching(/^sandbox +misconfigured/m)])
    },
  )

  it('B-CLI-82: looks at a session of the home by a short id', async () => {
    await stage.terret('run', '--model', 'offline:any', 'x')
    expect(await stage.terret('doctor', '--session', 'latest')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^Nothing is wrong/) as string,
    })
    expect((await stage.terret('doctor', '--session', 'none')).code).toBe(6)
  })
})
