// Types derived from tools and schemas: the calls of tools as hooks, streams and results show them, the `deps` that
// tools need, and the output of a schema. Types only. A tool or a schema whose types are unknown is open: any name, any
// JSON.
import type { Json } from '../../kernel/content.ts'
import type { AnyCall } from '../../view/pending-calls.ts'
import type { JsonSchema, StandardSchema } from './json-schema.ts'
import type { TakesDeps, Tool, ToolSource } from './tool.ts'

export type ToolList = readonly (Tool | ToolSource)[]
export type AnySchema = StandardSchema | JsonSchema

/** A union of the calls of these tools, discriminated by `tool`. One open tool makes the whole union open. */
export type CallsOf<T extends ToolList[number]> = string extends T['name'] ? AnyCall : TypedCall<T>
type TypedCall<T> = T extends { readonly name: infer Name; readonly '~args'?: infer Args }
  ? { readonly tool: Name; readonly args: AsJson<Args> }
  : never

/** The `deps` that a harness with these tools must build: it satisfies all of them. */
export type DepsOf<T extends ToolList[number]> = [DepsOfTool<T>] extends [never]
  ? DepsOfTool<TypedOnly<T>>
  : DepsOfTool<T>
/**
 * An open tool makes the result `never`; then it is left out in a second pass. Not in the first, because that costs the
 * compiler more.
 */
type DepsOfTool<T extends ToolList[number]> = [T['~deps']] extends [TakesDeps<infer Deps> | undefined] ? Deps : unknown
type TypedOnly<T> = T extends { readonly name: infer Name } ? (string extends Name ? never : T) : never

/** The output of a schema. For a JSON Schema only Json is known. */
export type SchemaOutput<Schema> =
  Schema extends StandardSchema<infer Made> ? (unknown extends Made ? Json : Made) : Json

/** The type of a value after it was written as JSON and read again. */
export type AsJson<T> = unknown extends T
  ? Json
  : T extends Json
    ? T
    : T extends { toJSON(): infer Said }
      ? AsJson<Said>
      : T extends readonly unknown[]
        ? { [I in keyof T]: AsJson<T[I]> | (undefined extends T[I] ? null : never) }
        : T extends NotInJson
          ? never
          : T extends object
            ? WrittenObject<T>
            : never

/** Merged into one object type, so that editors show its fields. */
type WrittenObject<T> = WrittenFields<T, AlwaysWritten<T>> &
  Partial<WrittenFields<T, Exclude<keyof T, AlwaysWritten<T>>>> extends infer Both
  ? { [K in keyof Both]: Both[K] }
  : never

/** The values that JSON leaves out of an object. */
type NotInJson = undefined | symbol | ((...args: never) => unknown)
type AlwaysWritten<T> = { [K in keyof T]-?: Extract<T[K], NotInJson> extends never ? K : never }[keyof T]
type WrittenFields<T, Keys extends keyof T> = {
  [K in Keys as Exclude<T[K], NotInJson> extends never ? never : K]: AsJson<Exclude<T[K], NotInJson>>
}
