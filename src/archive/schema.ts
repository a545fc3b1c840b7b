// JSON Schema, as far as scripts/event-schema.ts writes it and schema-check.ts reads it. A type only.

/** `description` says what a text or a number must be. */
export type Schema = {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly minLength?: number
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly propertyNames?: Schema
  readonly additionalProperties?: Schema | false
  /** By their `type`. */
  readonly oneOf?: readonly Schema[]
  /** By what kind of JSON they are. */
  readonly anyOf?: readonly Schema[]
}
