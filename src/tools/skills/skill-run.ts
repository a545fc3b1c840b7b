// The tool `skill_run`: runs one script of a skill, as bash runs a command, but without a shell and without the
// network.
import { extname } from 'node:path'
import {
  approvalOfConfinement,
  type ConfinedOptions,
  type Confinement,
  confinementOf,
  HARD_MS_MAX,
  rootedInFolder,
  placeOfConfinement,
  commandResult,
  runConfined,
  sandboxWarning,
} from '../shell/run-confined.ts'
import { withFile } from '../files/guarded-disk.ts'
import { ToolFailure } from '../core/tool-output.ts'
import { findProgram } from '../files/find-program.ts'
import { type Infer, integerField, listField, objectField, optionalField, textField } from '../core/argument-schema.ts'
import type { Skill } from './find-skills.ts'
import { filteredTool, locateSkillFile, findSkill } from './skill-read.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const HARD_MS = 60_000
const ARGUMENTS_MAX = 100
const ARGUMENT_CHARS_MAX = 10_000

/** The programs that can run a file, by its extension, best first, with the arguments before the script. */
const RUNNERS: Readonly<Record<string, readonly (readonly [string, ...string[]])[]>> = {
  '.py': [['uv', 'run', '--no-project'], ['python3']],
  '.sh': [['bash']],
  '.bash': [['bash']],
  '.js': [['node']],
  '.mjs': [['node']],
  '.go': [['go', 'run']],
}
/** Runners keep caches at home, which cannot be written, and would download missing parts. */
const VARIABLES = { XDG_CACHE_HOME: '/tmp/.cache', UV_OFFLINE: '1', GOPROXY: 'off', GOTOOLCHAIN: 'local' }

const input = objectField({
  name: textField('The name of the skill.', { min: 1 }),
  script: textField("The script, from the skill's folder.", { min: 1 }),
  args: optionalField(
    listField('Arguments, each passed on as it is.', textField('An argument.', { max: ARGUMENT_CHARS_MAX }), {
      max: ARGUMENTS_MAX,
    }),
  ),
  timeout_ms: optionalField(integerField(`Stop after this long. Default ${HARD_MS}.`, { min: 1, max: HARD_MS_MAX })),
})
type Args = Infer<typeof input>

export function skillRunTool(skills: readonly Skill[], options: ConfinedOptions): Tool {
  const ground = confinementOf(options)
  const tool = defineTool({
    name: 'skill_run',
    description: describeTool(ground),
    input,
    aliases: { skill: 'name', skill_name: 'name' },
    effect: 'once',
    sequential: true,
    // The script's own limit comes first; this one acts only if it fails.
    timeoutMs: HARD_MS_MAX + 10_000,
    approval: () => approvalOfConfinement(ground),
    place: () => ({ ...placeOfConfinement(ground), skills: skills.map(({ name, guarded }) => [name, guarded.root]) }),
    execute: (args, context) => runScript(findSkill(skills, args.name), args, { ground, context }),
  })
  return {
    ...tool,
    rooted: rootedInFolder(options, (moved) => skillRunTool(skills, moved)),
    filtered: filteredTool(skills, (some) => skillRunTool(some, options)),
  }
}

type ScriptRun = { readonly ground: Confinement; readonly context: ToolContext }

async function runScript(skill: Skill, asked: Args, { ground, context }: ScriptRun) {
  const { script, args = [], timeout_ms: hardMs = HARD_MS } = asked
  if (args.some((argument) => argument.includes('\0'))) {
    throw new ToolFailure('InvalidInput', 'An argument must not hold a NUL character.')
  }
  const place = await locateSkillFile(skill, script, context)
  const [program, ...before] = chooseRunner(place.shown, ground)
  // Open it once, so that a folder, a device or a missing file is reported before anything runs.
  await withFile(skill.guarded, place, async () => {})
  const errand = {
    argv: [program, ...before, place.path, ...args],
    network: false,
    // A script may be silent: only the hard limit counts.
    softMs: hardMs,
    hardMs,
    shown: [skill.guarded.root],
    variables: VARIABLES,
  }
  const told = {
    asked: { skill: skill.name, script: place.shown, args, runner: [program, ...before].join(' ') },
    timeoutText: () => `Stopped after ${hardMs} ms. "timeout_ms" allows up to ${HARD_MS_MAX}.`,
  }
  return commandResult(await runConfined(errand, ground, context), told, context)
}

function chooseRunner(script: string, { workspace, env }: Confinement): readonly [string, ...string[]] {
  const choices = RUNNERS[extname(script).toLowerCase()]
  if (choices === undefined) {
    throw new ToolFailure('InvalidInput', `"${script}" cannot be run. Scripts end with ${extensionsText()}.`)
  }
  for (const [name, ...before] of choices) {
    const program = findProgram(name, workspace, env)
    if (program !== null) return [program, ...before]
  }
  const names = choices.map(([name]) => name).join(' or ')
  throw new ToolFailure(
    'Unavailable',
    `"${script}" needs ${names}, which is not installed. Ask the user to install it.`,
  )
}

function extensionsText(): string {
  return Object.keys(RUNNERS).join(', ')
}

function describeTool(ground: Confinement): string {
  const what = `Runs a script of a skill (${extensionsText()}) in the workspace and returns JSON: skill, script, args, runner, stdout, stderr, exit_code, success. No process outlives the call. It is stopped after ${HARD_MS / 1000} s.`
  const walls =
    "Sandboxed: only the workspace and /tmp can be written, the skill's folder can be read, and there is no network."
  return `${what} ${sandboxWarning(ground) ?? walls}`
}
