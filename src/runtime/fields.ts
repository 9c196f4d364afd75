/** An object of JSON or YAML whose fields are not known yet. */
export type Fields = Readonly<Record<string, unknown>>;
