// Agent definitions as files: what is read, what is refused with its line, and what a workspace may not widen.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadAgents, type LoadOptions } from '../../src/agents/index.ts'
import { readText, repository } from '../tidy/source.ts'

const ARCHETYPES =
  'archivist code_executor critic help integrations_agent morning_briefing orchestrator planner researcher summarizer tool_maker tools_agent trigger_reactor trigger_triage welcome'.split(
    ' ',
  )

type Entry = { readonly loadAgents: typeof loadAgents }

let root = ''
let config = ''
let workspace = ''
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'terret-agents-'))
  config = join(root, 'config')
  workspace = join(root, 'work')
  for (const folder of [join(config, 'agents'), join(workspace, '.terret', 'agents')])
    mkdirSync(folder, { recursive: true })
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const front = (lines: string, prompt = 'Do it well.'): string => `---\nwhen_to_use: always\n${lines}\n---\n${prompt}\n`
const user = (name: string, text: string): string => put(join(config, 'agents', name), text)
const own = (name: string, text: string): string => put(join(workspace, '.terret', 'agents', name), text)
const load = (options: LoadOptions = {}) => loadAgents({ config, workspace, trusted: true, ...options })

function put(file: string, text: string): string {
  writeFileSync(file, text)
  return file
}

async function found(id: string, options?: LoadOptions) {
  return (await load(options)).definitions.find((each) => each.id === id)
}

describe('definitions of agents', () => {
  it('B-DEFINE-1: the fifteen archetypes ship as files, and all of them load', async () => {
    const { definitions, troubles } = await loadAgents()
    expect([definitions.map(({ id }) => id), troubles]).toEqual([ARCHETYPES, []])
    for (const each of definitions) expect([each.layer, each.prompt.length > 400]).toEqual(['built-in', true])
  })

  it('B-DEFINE-44: the built package has the archetypes as one JSON, equal to what their files say', async () => {
    const folder = join(repository, 'dist', 'agents', 'archetypes')
    const built = (await import(join(repository, 'dist', 'agents', 'index.js'))) as Entry
    user('critic.md', front('tools: [read]'))
    own('planner.md', '---\nmax_iterations: 1\n---\n')
    const source = await load()
    const placed = source.definitions.map((each) =>
      each.layer === 'built-in' ? { ...each, file: join(folder, basename(each.file)) } : each,
    )
    expect(await built.loadAgents({ config, workspace, trusted: true })).toEqual({ ...source, definitions: placed })
    const shipped = (await loadAgents()).definitions.map((each) => ({ ...each, file: basename(each.file) }))
    expect(JSON.parse(readText('dist/agents/archetypes.json'))).toEqual(shipped)
  })

  it('B-DEFINE-2: what a file leaves out has the defaults; its id is then its name', async () => {
    user('tiny.md', '---\nwhen_to_use: for tiny things\n---\nBe small.\n')
    expect(await found('tiny')).toMatchObject({
      id: 'tiny',
      displayName: 'tiny',
      model: 'inherit',
      temperature: 0.4,
      maxIterations: 8,
      tools: 'all',
      disallowedTools: [],
      extraTools: [],
      skillFilter: null,
      omit: {
        identity: true,
        memoryContext: true,
        safetyPreamble: true,
        skillsCatalog: true,
        profile: true,
        memoryMd: true,
      },
      sandbox: 'none',
      subagents: [],
      delegateName: 'delegate_tiny',
      tier: 'worker',
      maxResultChars: null,
      timeoutMs: null,
      compression: null,
      prompt: 'Be small.',
      layer: 'user',
    })
  })

  it('B-DEFINE-60: texts are one line without control and invisible characters', async () => {
    const lines =
      'when_to_use: "go\\0on\\e[31m\\nnow\\u200b"\ndisplay_name: "A\\x07\\u202eB"\nskill_filter: ["git\\0hub"]'
    user('a.md', `---\n${lines}\n---\nDo it.\n`)
    expect(await found('a')).toMatchObject({
      whenToUse: 'go on [31m now',
      displayName: 'A B',
      skillFilter: ['git hub'],
    })
    const file = user('a.md', '---\nwhen_to_use: x\ndisplay_name: "\\u200b\\0"\n---\nDo it.\n')
    await expect(load()).rejects.toThrow(`${file}:3: "display_name" must be a text that is not empty`)
  })

  it('B-DEFINE-3: a user’s file replaces a built-in one of its id as a whole', async () => {
    const file = user('critic.md', front('id: critic\nmax_iterations: 3'))
    expect(await found('critic')).toMatchObject({
      layer: 'user',
      file,
      maxIterations: 3,
      tools: 'all',
      sandbox: 'none',
    })
  })

  it('B-DEFINE-4: nothing of a workspace is read unless it is trusted', async () => {
    own('mine.md', front('bogus_key: 1'))
    const { definitions, troubles } = await load({ trusted: false })
    expect([definitions.length, troubles]).toEqual([15, []])
    expect((await loadAgents({ workspace })).definitions).toHaveLength(15)
  })

  it.each([
    ['temprature: 0.1', 3, '"temprature" is not known. Did you mean "temperature"?'],
    ['disallowed_tool: [bash]', 3, 'Did you mean "disallowed_tools"?'],
    ['max_iterations: 0', 3, '"max_iterations" must be a whole number from 1 to 1000, not "0"'],
    ['temperature: NaN', 3, '"temperature" must be a number from 0 to 2, not "NaN"'],
    ['temperature: .inf', 3, '"temperature" must be a number'],
    ['id: ../x', 3, '"id" must be a letter and up to 63 letters'],
    ['display_name: x\nsandbox: readonly', 4, 'did you mean "read_only"?'],
    ['agent_tier: boss', 3, '"agent_tier" must be chat or reasoning or worker'],
    ['tools: read', 3, '"tools" must be a list such as [a, b]'],
    ['tools: [../read]', 3, '"tools" must name tools'],
    ['model: gpt', 3, '"model" must be inherit, provider:model or hint:NAME'],
    ['model: hint:codng', 3, 'did you mean "coding"?'],
    ['subagents: {skills: some}', 3, 'must be a list of ids, or {skills: "*"}'],
    ['omit_identity: maybe', 3, '"omit_identity" must be true or false'],
    ['timeout_secs: -1', 3, '"timeout_secs" must be a whole number from 1'],
    ['__proto__: {a: b}', 3, '"__proto__" is not known'],
  ])('B-DEFINE-5: `%s` is refused with file, line and what to write', async (lines, line, text) => {
    const file = user('bad.md', front(lines))
    const refused = load()
    await expect(refused).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(refused).rejects.toThrow(`${file}:${line}: `)
    await expect(refused).rejects.toThrow(text)
  })

  it('B-DEFINE-6: a file that cannot be read is skipped and named, and the others are there', async () => {
    user('good.md', front('id: good'))
    user('plain.md', 'No front matter.')
    user('open.md', '---\nid: open\n')
    user('yaml.md', '---\nid: [a\n---\nx\n')
    user('huge.md', front('id: huge', 'x'.repeat(5_000_000)))
    mkdirSync(join(config, 'agents', 'folder.md'))
    symlinkSync(user('target.txt', front('id: linked')), join(config, 'agents', 'link.md'))
    const { definitions, troubles } = await load()
    expect(definitions.filter(({ layer }) => layer === 'user').map(({ id }) => id)).toEqual(['good'])
    expect(troubles).toMatchObject([
      expect.stringMatching(/folder\.md:1: it is not a regular file\. It is skipped\.$/),
      expect.stringMatching(/huge\.md:1: it has 50000\d\d bytes, and at most 262144 are read/),
      expect.stringMatching(/link\.md:1: it is a link/),
      expect.stringMatching(/open\.md:1: no line "---" ends the front matter/),
      expect.stringMatching(/plain\.md:1: it has no front matter/),
      expect.stringMatching(/yaml\.md:1: the front matter is not valid YAML/),
    ])
  })

  it('B-DEFINE-7: two files of one id, and two tools of one name, are refused with both places', async () => {
    const first = user('a.md', front('id: same'))
    const second = user('b.md', front('id: same'))
    await expect(load()).rejects.toThrow(`${second}:3: "same" is also the id of ${first}`)
    rmSync(second)
    user('c.md', front('id: other\ndelegate_name: delegate_critic'))
    await expect(load()).rejects.toThrow('its tool "delegate_critic" is also that of "critic"')
  })

  it.each([
    ['chat', 'orchestrator', 'a chat agent starts only reasoning and worker agents'],
    ['reasoning', 'planner', 'a reasoning agent starts only worker agents'],
    ['worker', 'critic', 'a worker agent starts no other agents'],
  ])('B-DEFINE-8: a %s that lists %s refuses to load, with file and line', async (tier, child, rule) => {
    const file = user('lead.md', front(`id: lead\nagent_tier: ${tier}\nsubagents: [${child}]`))
    const refused = load()
    await expect(refused).rejects.toThrow(`${file}:5: "lead" (${tier}) lists "${child}"`)
    await expect(refused).rejects.toThrow(rule)
  })

  it('B-DEFINE-9: a cycle is refused by the tiers; {skills: "*"} is exempt from them, but not for itself', async () => {
    user('a.md', front('id: a\nagent_tier: chat\nsubagents: [b]'))
    const back = user('b.md', front('id: b\nagent_tier: reasoning\nsubagents: [a]'))
    await expect(load()).rejects.toThrow(`${back}:5: "b" (reasoning) lists "a" (chat)`)
    rmSync(back)
    rmSync(join(config, 'agents', 'a.md'))
    user('w.md', front('id: w\nsubagents: {skills: "*"}'))
    expect(await found('w')).toMatchObject({ tier: 'worker', subagents: [], integrations: true })
    user('i.md', front('id: integrations_agent\nsubagents: [{skills: "*"}]'))
    await expect(load()).rejects.toThrow('lists {skills: "*"}, which is itself')
  })

  it('B-DEFINE-10: a listed id that is not there is left out and named with the nearest', async () => {
    const file = user('lead.md', front('id: lead\nagent_tier: chat\nsubagents: [reseacher, critic]'))
    const { definitions, troubles } = await load()
    expect(definitions.find(({ id }) => id === 'lead')?.subagents).toEqual(['critic'])
    expect(troubles).toEqual([`${file}:5: there is no agent "reseacher". Did you mean "researcher"? It is left out.`])
  })

  it('B-DEFINE-50: an alias of nothing, or aliases without end, skip the file, and it is named', async () => {
    user('nothing.md', front('tools: [*none]'))
    const nines = (name: string): string => `[${Array.from({ length: 9 }, () => name).join(', ')}]`
    user(
      'without.md',
      front(`tools: &a ${nines('x')}\nmodel: &b ${nines('*a')}\nsandbox: &c ${nines('*b')}\nid: ${nines('*c')}`),
    )
    const { troubles } = await load()
    expect(troubles).toMatchObject([
      expect.stringMatching(/nothing\.md:1: the front matter is not valid YAML: Unresolved alias/),
      expect.stringMatching(/without\.md:1: the front matter is not valid YAML: Excessive alias/),
    ])
  })

  it('B-DEFINE-51: where a file of the user breaks the list of one that ships, the file of the user is named', async () => {
    const file = user('researcher.md', front('id: researcher\nagent_tier: reasoning'))
    await expect(load()).rejects.toThrow(`${file}:4: "morning_briefing" (reasoning) lists "researcher" (reasoning)`)
  })

  it.each(['fork', 'default', 'subagent'])('B-DEFINE-52: no definition is called %s', async (id) => {
    const file = user('mine.md', front(`id: ${id}`))
    await expect(load()).rejects.toThrow(`${file}:3: "${id}" is an agent of the harness itself`)
  })
})

describe('definitions of a workspace', () => {
  it('B-DEFINE-53: where nobody said how long an agent may work, a workspace gives it no more than a harness does', async () => {
    user('mine.md', front('id: mine'))
    const narrows = own('mine.md', front('id: mine\ntimeout_secs: 601'))
    await expect(load()).rejects.toThrow(`${narrows}:4: "timeout_secs" is more than the agent has`)
    own('mine.md', front('id: mine\ntimeout_secs: 600'))
    const added = own('theirs.md', front('id: theirs\ntimeout_secs: 601'))
    await expect(load()).rejects.toThrow(`${added}:4: "timeout_secs" is more than the agent has`)
  })

  it('B-DEFINE-11: a workspace narrows what it replaces, and what it leaves out stays', async () => {
    own(
      'researcher.md',
      '---\ntools: [read, search]\nmax_iterations: 4\ndisallowed_tools: [search]\n---\nOnly the docs folder.\n',
    )
    expect(await found('researcher')).toMatchObject({
      layer: 'workspace',
      tools: ['read', 'search'],
      maxIterations: 4,
      sandbox: 'read_only',
      prompt: 'Only the docs folder.',
      disallowedTools: ['search'],
    })
  })

  it.each([
    ['critic', 'tools: all', '"tools" is all, and the agent has a list'],
    ['critic', 'tools: [read, bash]', '"tools" adds "bash"'],
    ['critic', 'extra_tools: [write]', '"extra_tools" adds "write"'],
    ['critic', 'sandbox: none', '"sandbox" is none, which is looser than read_only'],
    ['critic', 'agent_tier: chat', '"agent_tier" is chat, which is above worker'],
    ['critic', 'max_iterations: 13', '"max_iterations" is 13, and 12 is the most here'],
    ['critic', 'model: evil:big', '"model" names the provider "evil"'],
    ['critic', 'omit_memory_md: false', '"omit_memory_md" is false, which shows the agent more'],
    ['critic', 'skill_filter: all', '"skill_filter" is all'],
    ['critic', 'delegate_name: delegate_me', '"delegate_name" is not "delegate_critic"'],
    ['planner', 'subagents: [researcher, code_executor]', '"subagents" adds "code_executor"'],
    ['planner', 'subagents: [researcher, {skills: "*"}]', '"subagents" adds {skills: "*"}'],
    ['trigger_triage', 'timeout_secs: 121', '"timeout_secs" is more'],
    ['trigger_triage', 'max_result_chars: 2001', '"max_result_chars" is more'],
    ['fresh', 'when_to_use: x\nmodel: evil:big', '"model" names the provider "evil"'],
    ['fresh', 'when_to_use: x\nmax_iterations: 51', '"max_iterations" is 51, and 50 is the most here'],
    ['fresh', 'when_to_use: x\nomit_profile: false', '"omit_profile" is false'],
  ])('B-DEFINE-12: of %s, `%s` is more than it may: refused with file and line', async (id, lines, text) => {
    const file = own(`${id}.md`, `---\n${lines}\n---\nMore.\n`)
    const refused = load({ maxIterations: 50 })
    await expect(refused).rejects.toMatchObject({ code: 'invalid_config' })
    await expect(refused).rejects.toThrow(`${file}:`)
    await expect(refused).rejects.toThrow(`${text}`)
    await expect(refused).rejects.toThrow('A workspace may only narrow.')
  })

  it('B-DEFINE-13: it may name a model of a provider that the user uses, and agents of its own within the harness', async () => {
    own('fresh.md', '---\nwhen_to_use: x\nmodel: mine:small\nsubagents: [critic]\nagent_tier: reasoning\n---\nFresh.\n')
    expect(await found('fresh', { providers: ['mine'] })).toMatchObject({ model: 'mine:small', subagents: ['critic'] })
  })

  it('B-DEFINE-14: a folder of definitions that leads out of the workspace is not read', async () => {
    const outside = join(root, 'outside')
    mkdirSync(outside)
    writeFileSync(join(outside, 'x.md'), front('id: x'))
    rmSync(join(workspace, '.terret', 'agents'), { recursive: true })
    symlinkSync(outside, join(workspace, '.terret', 'agents'))
    const { definitions, troubles } = await load()
    expect([definitions.length, troubles]).toEqual([15, [expect.stringContaining('leads out of its workspace')]])
  })

  it('B-DEFINE-15: options of loadAgents that are not known are refused', async () => {
    await expect(loadAgents({ worksapce: '.' } as LoadOptions)).rejects.toThrow('did you mean "workspace"?')
  })
})
