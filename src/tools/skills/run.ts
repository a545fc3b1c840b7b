// `skill_run`: one script of a skill, run as bash runs a command, but without a shell and without the network.
import { extname } from 'node:path'
import {
  approvalOfGround,
  type ConfinedOptions,
  type Ground,
  groundOf,
  HARD_MS_MAX,
  inFolder,
  placeOf,
  resultOf,
  runConfined,
  warning,
} from '../shell/confined.ts'
import { inFile } from '../files/disk.ts'
import { ToolFailure } from '../core/output.ts'
import { findProgram } from '../files/programs.ts'
import { type Infer, integer, list, object, optional, text } from '../core/schema.ts'
import type { Skill } from './find.ts'
import { among, fileOf, skillNamed } from './read.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const HARD_MS = 60_000
const ARGUMENTS_MAX = 100
const ARGUMENT_CHARS_MAX = 10_000

/** By extension: the programs that can run it, best first, with what stands before the script. */
const RUNNERS: Readonly<Record<string, readonly (readonly [string, ...string[]])[]>> = {
  '.py': [['uv', 'run', '--no-project'], ['python3']],
  '.sh': [['bash']],
  '.bash': [['bash']],
  '.js': [['node']],
  '.mjs': [['node']],
  '.go': [['go', 'run']],
}
/** Runners keep caches at home, which cannot be written, and ask the network for what is missing there. */
const VARIABLES = { XDG_CACHE_HOME: '/tmp/.cache', UV_OFFLINE: '1', GOPROXY: 'off', GOTOOLCHAIN: 'local' }

const input = object({
  name: text('The name of the skill.', { min: 1 }),
  script: text("The script, from the skill's folder.", { min: 1 }),
  args: optional(
    list('Arguments, each passed on as it is.', text('An argument.', { max: ARGUMENT_CHARS_MAX }), {
      max: ARGUMENTS_MAX,
    }),
  ),
  timeout_ms: optional(integer(`Stop after this long. Default ${HARD_MS}.`, { min: 1, max: HARD_MS_MAX })),
})
type Args = Infer<typeof input>

export function skillRunTool(skills: readonly Skill[], options: ConfinedOptions): Tool {
  const ground = groundOf(options)
  const tool = defineTool({
    name: 'skill_run',
    description: describe(ground),
    input,
    aliases: { skill: 'name', skill_name: 'name' },
    effect: 'once',
    sequential: true,
    // The script's own limit comes first; this one only if that did not work.
    timeoutMs: HARD_MS_MAX + 10_000,
    approval: () => approvalOfGround(ground),
    place: () => ({ ...placeOf(ground), skills: skills.map(({ name, guarded }) => [name, guarded.root]) }),
    execute: (args, context) => run(skillNamed(skills, args.name), args, { ground, context }),
  })
  return {
    ...tool,
    rooted: inFolder(options, (moved) => skillRunTool(skills, moved)),
    filtered: among(skills, (some) => skillRunTool(some, options)),
  }
}

type Stage = { readonly ground: Ground; readonly context: ToolContext }

async function run(skill: Skill, asked: Args, { ground, context }: Stage) {
  const { script, args = [], timeout_ms: hardMs = HARD_MS } = asked
  if (args.some((argument) => argument.includes('\0'))) {
    throw new ToolFailure('InvalidInput', 'An argument must not hold a NUL character.')
  }
  const place = await fileOf(skill, script, context)
  const [program, ...before] = runnerOf(place.shown, ground)
  // Opened once, so that a folder, a device or a missing file is told before anything runs.
  await inFile(skill.guarded, place, async () => {})
  const errand = {
    argv: [program, ...before, place.path, ...args],
    network: false,
    // A script is allowed to be silent: only the hard limit counts.
    softMs: hardMs,
    hardMs,
    shown: [skill.guarded.root],
    variables: VARIABLES,
  }
  const told = {
    asked: { skill: skill.name, script: place.shown, args, runner: [program, ...before].join(' ') },
    timeoutText: () => `Stopped after ${hardMs} ms. "timeout_ms" allows up to ${HARD_MS_MAX}.`,
  }
  return resultOf(await runConfined(errand, ground, context), told, context)
}

function runnerOf(script: string, { workspace, env }: Ground): readonly [string, ...string[]] {
  const choices = RUNNERS[extname(script).toLowerCase()]
  if (choices === undefined) {
    throw new ToolFailure('InvalidInput', `"${script}" cannot be run. Scripts end with ${knownText()}.`)
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

function knownText(): string {
  return Object.keys(RUNNERS).join(', ')
}

function describe(ground: Ground): string {
  const what = `Runs a script of a skill (${knownText()}) in the workspace and returns JSON: skill, script, args, runner, stdout, stderr, exit_code, success. No process outlives the call. It is stopped after ${HARD_MS / 1000} s.`
  const walls =
    "Sandboxed: only the workspace and /tmp can be written, the skill's folder can be read, and there is no network."
  return `${what} ${warning(ground) ?? walls}`
}
