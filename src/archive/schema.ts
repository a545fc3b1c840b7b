// The part of JSON Schema that scripts/event-schema.ts writes and schema-check.ts reads. Only a type.

/** `description` says what kind of text or number is expected. */
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
  /** Told apart by their `type` field. */
  readonly oneOf?: readonly Schema[]
  /** Told apart by their JSON type. */
  readonly anyOf?: readonly Schema[]
}
