// `skill_read`: the text of a skill, or another file of it, a page at a time. It changes nothing and runs nothing.
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { CONTENT_CHARS_MAX, clip } from '../core/bound.ts'
import { see } from '../files/disk.ts'
import { visible } from '../../view/invisible.ts'
import { output, ToolFailure } from '../core/output.ts'
import { isShown, locateFor, type Place, PATH_ALIASES } from '../files/paths.ts'
import { type Infer, integer, object, optional, text } from '../core/schema.ts'
import type { Skill } from './find.ts'
import { summaryOf } from './text.ts'
import { defineTool, type Tool, type ToolContext } from '../core/tool.ts'

const FILES_MAX = 200
const FOLDERS_MAX = 200

const input = object({
  name: text('The name of the skill.', { min: 1 }),
  path: optional(
    text("Another file of the skill, from the skill's folder. Without it: the skill's own text.", { min: 1 }),
  ),
  offset: optional(integer('Where to read on, as the last answer said.', { min: 0 })),
})
type Args = Infer<typeof input>

export function skillReadTool(skills: readonly Skill[]): Tool {
  const tool = defineTool({
    name: 'skill_read',
    description: 'Reads a skill: its instructions and the list of its files, or one of those files.',
    input,
    aliases: { ...PATH_ALIASES, skill: 'name', skill_name: 'name' },
    effect: 'read',
    instructions: summaryOf(skills),
    execute: (args, context) => read(skillNamed(skills, args.name), args, context),
  })
  return { ...tool, filtered: among(skills, skillReadTool) }
}

/** The tool that `make` makes of the skills with some names. */
export function among(skills: readonly Skill[], make: (some: readonly Skill[]) => Tool): Tool['filtered'] & {} {
  return (names) => {
    const some = skills.filter(({ name }) => names.includes(name))
    return some.length === 0 ? null : make(some)
  }
}

export function skillNamed(skills: readonly Skill[], name: string): Skill {
  const skill = skills.find((one) => one.name === name)
  if (skill) return skill
  const names = clip(skills.map((one) => one.name).join(', '), 2000)
  throw new ToolFailure('NotFound', `There is no skill "${clip(name, 64)}". The skills are: ${names}.`)
}

/** A file of the skill, in its folder with every link resolved. */
export function fileOf({ guarded, alone, file, name }: Skill, path: string, context: ToolContext): Promise<Place> {
  if (alone && path !== file) {
    throw new ToolFailure('NotFound', `The skill "${name}" is the single file "${file}"; there is no "${path}".`)
  }
  return locateFor(guarded, path, 'read', context)
}

async function read(skill: Skill, { path = skill.file, offset = 0 }: Args, context: ToolContext) {
  const place = await fileOf(skill, path, context)
  const { bytes, hash } = await see(skill.guarded, place)
  if (bytes.subarray(0, 8000).includes(0)) {
    const message = `"${place.shown}" is a binary file of ${bytes.length} bytes; skill_read shows text only.`
    throw new ToolFailure('InvalidInput', message)
  }
  const { text: whole, removed } = visible(context.redact(bytes.toString()))
  if (offset > whole.length) {
    throw new ToolFailure(
      'InvalidInput',
      `"${place.shown}" has ${whole.length} characters; there is no offset ${offset}.`,
    )
  }
  const page = pageAt(whole, offset)
  const next = offset + page.length
  const more = next < whole.length
  const notes = [
    ...(more ? [`characters ${offset} to ${next} of ${whole.length}; read on with offset ${next}`] : []),
    ...(removed > 0 ? [`${removed} invisible characters are left out`] : []),
    ...(path === skill.file && offset === 0 ? [await filesText(skill, context)] : []),
  ]
  const metadata = { skill: skill.name, path: place.shown, bytes: bytes.length, hash }
  const on = more ? { truncated: true, next_offset: next } : {}
  const said = notes.map((note) => `(${note})`)
  return output({ content: [page, ...said].join('\n'), metadata: { ...metadata, ...on } })
}

/** Ends with a line if there is a line to end with. */
function pageAt(whole: string, offset: number): string {
  const part = clip(whole.slice(offset), CONTENT_CHARS_MAX)
  const line = part.lastIndexOf('\n')
  return part.length < whole.length - offset && line > CONTENT_CHARS_MAX / 2 ? part.slice(0, line + 1) : part
}

async function filesText(skill: Skill, context: ToolContext): Promise<string> {
  if (skill.alone) return 'this skill has no other files'
  const { files, more } = await filesIn(skill.guarded.root)
  const shown = files.filter((file) => file !== skill.file && isShown(join(skill.guarded.root, file), context))
  const others = shown.map((file) => JSON.stringify(visible(file).text))
  if (others.length === 0) return 'this skill has no other files'
  return `files of this skill: ${others.join(', ')}${more ? ', and more' : ''}`
}

/** Links are not followed: what they lead to is not the skill's. */
async function filesIn(root: string): Promise<{ readonly files: readonly string[]; readonly more: boolean }> {
  const files: string[] = []
  const open = [root]
  for (let looked = 0; open.length > 0; looked++) {
    if (looked === FOLDERS_MAX) return { files: files.toSorted(), more: true }
    const folder = open.shift() ?? root
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules') open.push(path)
      if (!entry.isFile()) continue
      if (files.length === FILES_MAX) return { files: files.toSorted(), more: true }
      files.push(relative(root, path))
    }
  }
  return { files: files.toSorted(), more: false }
}
