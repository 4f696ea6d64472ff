module training

go 1.19
