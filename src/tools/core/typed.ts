// What types follow from tools and schemas: the calls of tools as hooks, streams and results show them, what tools need of the
// harness's `context`, and what a schema makes. Types only. A tool or a schema whose types are not known is open: any name, any JSON.
import type { Json } from '../../kernel/content.ts'
import type { AnyCall } from '../../view/pending.ts'
import type { JsonSchema, StandardSchema } from './json-schema.ts'
import type { Needs, Tool, ToolSource } from './tool.ts'

export type ToolList = readonly (Tool | ToolSource)[]
export type AnySchema = StandardSchema | JsonSchema

/** Each call that tools may get, told apart by `tool`. One open tool among them makes all of it open. */
export type CallsOf<T extends ToolList[number]> = string extends T['name'] ? AnyCall : EachCall<T>
type EachCall<T> = T extends { readonly name: infer Name; readonly '~args'?: infer Args }
  ? { readonly tool: Name; readonly args: AsJson<Args> }
  : never

/** What the `context` of a harness with these tools must build: all that any of them needs. */
export type DepsOf<T extends ToolList[number]> = [NeedOf<T>] extends [never] ? NeedOf<Closed<T>> : NeedOf<T>
/** An open tool among them makes it `never`: that one is then left out. Not at once, because it costs the compiler more. */
type NeedOf<T extends ToolList[number]> = [T['~deps']] extends [Needs<infer Deps> | undefined] ? Deps : unknown
type Closed<T> = T extends { readonly name: infer Name } ? (string extends Name ? never : T) : never

/** What a schema makes of a value that fits it. Of a JSON Schema only that it is JSON is known. */
export type MadeBy<Schema> = Schema extends StandardSchema<infer Made> ? (unknown extends Made ? Json : Made) : Json

/** A value as it is after it was written as JSON and read again. */
export type AsJson<T> = unknown extends T
  ? Json
  : T extends Json
    ? T
    : T extends { toJSON(): infer Said }
      ? AsJson<Said>
      : T extends readonly unknown[]
        ? { [I in keyof T]: AsJson<T[I]> | (undefined extends T[I] ? null : never) }
        : T extends Unwritten
          ? never
          : T extends object
            ? Written<T>
            : never

/** In one object, so that editors show its fields. */
type Written<T> = Fields<T, SureKeys<T>> & Partial<Fields<T, Exclude<keyof T, SureKeys<T>>>> extends infer Both
  ? { [K in keyof Both]: Both[K] }
  : never

/** What JSON leaves out of an object. */
type Unwritten = undefined | symbol | ((...args: never) => unknown)
type SureKeys<T> = { [K in keyof T]-?: Extract<T[K], Unwritten> extends never ? K : never }[keyof T]
type Fields<T, Keys extends keyof T> = {
  [K in Keys as Exclude<T[K], Unwritten> extends never ? never : K]: AsJson<Exclude<T[K], Unwritten>>
}
